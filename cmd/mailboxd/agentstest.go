package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/doctor"
)

func agentsTestCommand(g *globals) *cobra.Command {
	timeout, asJSON, sandboxOnly := 2*time.Minute, false, false
	cmd := &cobra.Command{
		Use:   "test NAME",
		Short: "Try to break out of an agent's sandbox, and send it a tiny task",
		Long: `If the agent has a sandbox, run a program in it that tries to break out, and
print each attempt. It harms nothing: its targets are made for it. Then send a
task to the agent in your name, wait for its result, and print the result with
its cost. The task asks for one word and allows no tools. It is a task like any
other: the policy checks it, and if it needs an approval, nothing runs before
the approval.

With --json, each is a JSON object on a line.

Exit codes: 0 done, 1 the sandbox fails (no task is sent), 3 ended in error, 4 rejected or denied, 5 waits for a person
or took longer than --timeout, 7 the daemon is not running.`,
		Example: "  mailboxd agents test reviewer\n  mailboxd agents test reviewer --sandbox\n  mailboxd agents test reviewer --json | jq -s .[-1].output.session_id",
		Args:    cobra.ExactArgs(1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, e, a, err := findAgent(cmd, g, args[0])
		g.quiet = true // it has said which mistakes there are
		if err == nil && (sandboxOnly || a.Binding.Sandbox.Active()) {
			err = testSandbox(cmd, cfg, a, asJSON)
		}
		if err != nil || sandboxOnly {
			return err
		}
		if a.Binding.Sandbox.Active() && !asJSON {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		return withDaemon(g, func(cmd *cobra.Command, _ []string, _ *reader.Reader, _ *client.Client) error {
			return testAgent(cmd, cfg, e, a, timeout, asJSON)
		})(cmd, args)
	}
	cmd.Flags().BoolVar(&sandboxOnly, "sandbox", false, "try only the sandbox; send no task, and need no daemon")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait, and the limit of the run")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as one JSON object")
	cmd.ValidArgsFunction = completeAgents(g)
	return cmd
}

// findAgent finds an agent in the configuration that has no problem.
func findAgent(cmd *cobra.Command, g *globals, id string) (cfg config.Config, e config.Entry, a config.Agent, err error) {
	if cfg, err = g.partial(cmd.ErrOrStderr()); err != nil {
		return cfg, e, a, err
	}
	index := slices.IndexFunc(cfg.Agents, func(e config.Entry) bool { return e.ID == id })
	if index < 0 {
		return cfg, e, a, exit.With(exit.Usage, "no agent %q is configured; see: mailboxd agents", id)
	}
	e, a = cfg.Agents[index], cfg.ReadAgents()[index]
	if err = a.Problem(); err != nil {
		err = fmt.Errorf("test agent %s: %w", id, err)
	}
	return cfg, e, a, err
}

// testSandbox tries to break out of the sandbox of an agent.
func testSandbox(cmd *cobra.Command, cfg config.Config, a config.Agent, asJSON bool) error {
	id := a.Binding.ID
	if !a.Binding.Sandbox.Active() {
		return exit.With(exit.Usage, "agent %s has no sandbox; see docs/sandbox.md", id)
	}
	root, err := filepath.Abs(cfg.Root)
	if err != nil {
		return err
	}
	state, err := cfg.StateDirOf(root)
	if err != nil {
		return err
	}
	found, err := doctor.TryBreakout(cmd.Context(), a.Binding, root, state)
	if err != nil {
		return err
	}
	if err := found.Print(cmd.OutOrStdout(), asJSON); err != nil || found.Broke == 0 {
		return err
	}
	return fmt.Errorf("the sandbox of %s does not hold %d attempts; nothing was sent to the agent", id, found.Broke)
}

func testAgent(cmd *cobra.Command, cfg config.Config, e config.Entry, a config.Agent, timeout time.Duration, asJSON bool) error {
	ctx, at := cmd.Context(), locationOf(cfg)
	request, err := testTask(e, a.Subject.Manifest, timeout).request(cmd)
	if err != nil {
		return err
	}
	task, err := appendTask(ctx, cfg, request, true)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, timeout+answerGrace)
	defer cancel()
	raw, err := term.Spin(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr(), func(ctx context.Context) string { return reader.Progress(ctx, at, task.ID) },
		func() ([]byte, error) { return task.AwaitUnlessHeld(limited, at) })
	if err != nil {
		return err
	}
	if err := view.PrintResult(cmd.OutOrStdout(), raw, asJSON); err != nil {
		return err
	}
	if asJSON {
		return verdictOf(raw)
	}
	return cmp.Or(at.Read(ctx, func(ctx context.Context, d *reader.Reader) error {
		file, err := d.Details(ctx, task.ID)
		return cmp.Or(err, view.PrintMetered(cmd.OutOrStdout(), file.Runs))
	}), verdictOf(raw))
}

// testTask describes a tiny task that the agent takes.
func testTask(e config.Entry, m *envelope.Manifest, timeout time.Duration) *sendFlags {
	f := &sendFlags{
		agent:       e.ID,
		description: "This tests whether you can be reached. Answer with the one word ready, and do nothing else.",
		extra:       map[string]any{"allowed_tools": []string{}, "deadline": formatTime(timeout.String(), time.Now())},
	}
	f.fit(e, m, "agent_test")
	return f
}

// fit fills in a role, a type and an environment that the agent takes, unless flags name them.
func (f *sendFlags) fit(e config.Entry, m *envelope.Manifest, taskType string) {
	if f.role == "" {
		if f.role = "executor"; m != nil && len(m.RoleTypes) > 0 && !slices.Contains(m.RoleTypes, f.role) {
			f.role = m.RoleTypes[0]
		}
	}
	if f.taskType == "" {
		if f.taskType = taskType; len(e.TaskTypes) > 0 {
			f.taskType = strings.NewReplacer("*", "test", "?", "x").Replace(e.TaskTypes[0])
		}
	}
	if f.environment == "" && len(e.Environments) > 0 {
		f.environment = e.Environments[0]
	}
}

// answerGrace is how long a result may take after the deadline.
const answerGrace = 15 * time.Second
