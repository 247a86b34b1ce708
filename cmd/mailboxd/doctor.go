package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/doctor"
	"mailboxd/internal/running/runner"
)

func doctorCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation, and say how to fix problems",
		Long: `Check the mailbox, the state, the agents and the machine. Each check prints what
it found and, for a problem, the command that fixes it. Doctor changes nothing.
The exit code is 1 if there is a problem.`,
		Example: "  mailboxd doctor\n  mailboxd doctor --json | jq 'select(.state != \"ok\")'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := doctor.Examine(cmd.Context(), doctorOptionsOf(g))
			if err := doctor.Print(cmd.OutOrStdout(), findings, asJSON); err != nil {
				return err
			}
			for _, f := range findings {
				if f.State == doctor.Bad {
					return &exit.Error{Code: exit.Failed}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// doctorOptionsOf reads what doctor examines.
func doctorOptionsOf(g *globals) doctor.Options {
	o := doctor.Options{Config: cmp.Or(g.config, config.DefaultPath(), "$HOME/.config/mailboxd/config.yaml")}
	o.Build, _ = runner.BuildID(version())
	o.Runner = ownRunner()
	found, err := config.Examine(g.config, g.root)
	cfg := found.Config
	if err == nil {
		err = found.Mistakes.Err()
	}
	for _, m := range found.Mistakes.Only(config.Warns) {
		switch {
		case m.File == "": // a variable
			o.Warnings = append(o.Warnings, m.Message)
		case m.Key == "notice.command": // the rest is about agents
			o.Renamed = append(o.Renamed, m.Key+" "+m.Message)
		}
	}
	if err == nil {
		o.Root, err = filepath.Abs(cfg.Root)
	}
	if err == nil {
		o.State, err = cfg.StateDirOf(o.Root)
	}
	if o.Err = err; err != nil {
		return o
	}
	o.Seal = cfg.Sealing(o.State)
	o.ApproversFile, o.ApproversGroup = cfg.ApproversFile, cfg.ApproversGroup
	o.GroupSocket, o.GroupErr = cfg.GroupSocket()
	for _, a := range cfg.Proofs("").List {
		o.Approvers = append(o.Approvers, doctor.Approver{Name: a.Name, Proof: a.Min})
	}
	for _, a := range cfg.ReadAgents() {
		o.Agents = append(o.Agents, doctor.Agent{Binding: a.Binding, Problem: a.Problem()})
	}
	return o
}

// ownRunner reads the configuration of the runner of this machine; nil without one.
func ownRunner() *doctor.Runner {
	file := config.DefaultRunnerPath()
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	cfg, err := config.LoadRunner(file)
	r := &doctor.Runner{File: file, Err: err, MinFree: cfg.MinFree}
	if err == nil {
		r.State, r.Err = cfg.StateDir()
	}
	if r.Err == nil {
		why, _ := os.ReadFile(filepath.Join(r.State, config.NoJobsFile)) // none: its daemon gives it tasks
		r.NoJobs = strings.TrimSpace(string(why))
	}
	return r
}
