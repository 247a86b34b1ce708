package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"mailboxd/internal/config"
	"mailboxd/internal/exit"
	"mailboxd/internal/term"

	"github.com/spf13/cobra"
)

func doctorCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check all that mailboxd needs, and say how to mend what is bad",
		Long: `Doctor looks at the mailbox, the state, the agents and the machine. It prints
every check with what it found and, where something is to be mended, the line that
mends it. It changes nothing. The exit code is 1 when something is bad.`,
		Example: "  mailboxd doctor\n  mailboxd doctor --json | jq 'select(.state != \"ok\")'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor{}
			d.examine(cmd.Context(), g)
			if err := printFindings(cmd.OutOrStdout(), d.findings, asJSON); err != nil {
				return err
			}
			for _, f := range d.findings {
				if f.State == gradeBad {
					return &exit.Error{Code: exit.Failed}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	return cmd
}

// A finding is what one check found. Names and states stay what they are.
type finding struct {
	Check   string `json:"check"`
	Subject string `json:"subject,omitempty"` // of several things that one check looks at
	State   grade  `json:"state"`
	Finding string `json:"finding"`
	Mend    string `json:"mend,omitempty"` // what to do about it
}

// A grade is how bad it is.
type grade string

const (
	gradeOK   grade = "ok"
	gradeWarn grade = "warn" // it works, and might be better
	gradeBad  grade = "bad"
)

// A doctor goes through the checks and writes down what it finds.
type doctor struct {
	cfg      config.Config
	config   string // its file
	root     string
	state    string // the state directory
	pid      int    // the daemon's; 0 when none is seen
	path     string // the PATH that agents are looked for on
	findings []finding
}

func (d *doctor) examine(ctx context.Context, g *globals) {
	if d.configuration(g) {
		for _, check := range []func(context.Context){
			d.mailbox, d.cleaning, d.stateDirectory, d.daemon, d.socket, d.keeper, d.ledger,
			d.service, d.paths, d.agents, d.disks,
		} {
			check(ctx)
		}
	}
	d.inotify()
	d.clock()
}

func (d *doctor) note(f finding) { d.findings = append(d.findings, f) }

func (d *doctor) good(check, format string, args ...any) {
	d.note(finding{Check: check, State: gradeOK, Finding: fmt.Sprintf(format, args...)})
}

func (d *doctor) warn(check, mend, format string, args ...any) {
	d.note(finding{Check: check, State: gradeWarn, Finding: fmt.Sprintf(format, args...), Mend: mend})
}

func (d *doctor) bad(check, mend, format string, args ...any) {
	d.note(finding{Check: check, State: gradeBad, Finding: fmt.Sprintf(format, args...), Mend: mend})
}

func printFindings(w io.Writer, findings []finding, asJSON bool) error {
	if asJSON {
		for _, f := range findings {
			if err := term.PrintJSON(w, f); err != nil {
				return err
			}
		}
		return nil
	}
	count, width := map[grade]int{}, 0
	for _, f := range findings {
		count[f.State]++
		width = max(width, len(f.name()))
	}
	for _, f := range findings {
		fmt.Fprintf(w, "%-4s  %-*s  %s\n", f.State, width, f.name(), term.Escape(f.Finding))
		if f.Mend != "" {
			fmt.Fprintf(w, "%*s-> %s\n", width+8, "", term.Escape(f.Mend))
		}
	}
	_, err := fmt.Fprintf(w, "\n%d ok, %d that might be better, %d bad\n", count[gradeOK], count[gradeWarn], count[gradeBad])
	return err
}

func (f finding) name() string { return strings.TrimSpace(f.Check + " " + term.Escape(f.Subject)) }
