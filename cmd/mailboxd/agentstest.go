package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/config"
	"mailboxd/internal/exit"
	"mailboxd/internal/reader"
	"mailboxd/internal/term"
	"mailboxd/internal/view"
)

func agentsTestCommand(g *globals) *cobra.Command {
	timeout, asJSON := 2*time.Minute, false
	cmd := &cobra.Command{
		Use:   "test NAME",
		Short: "Send a tiny task to an agent and print the result",
		Long: `Send a task to the agent in your name, wait for its result, and print the result
with its cost. The task asks for one word and allows no tools. It is a task like
any other: the policy checks it, and if it needs an approval, nothing runs before
the approval.

Exit codes: 0 done, 3 ended in error, 4 rejected or denied, 5 waits for a person
or took longer than --timeout, 7 the daemon is not running.`,
		Example: "  mailboxd agents test reviewer\n  mailboxd agents test reviewer --json | jq .output.session_id",
		Args:    cobra.ExactArgs(1),
		RunE: withDaemon(g, func(cmd *cobra.Command, args []string, r *reader.Reader, _ *client.Client) error {
			return testAgent(cmd, g, args[0], timeout, asJSON)
		}),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait, and the limit of the run")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as one JSON object")
	cmd.ValidArgsFunction = completeAgents(g)
	return cmd
}

func testAgent(cmd *cobra.Command, g *globals, id string, timeout time.Duration, asJSON bool) error {
	cfg, err := g.partial(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	ctx, at := cmd.Context(), locationOf(cfg)
	index := slices.IndexFunc(cfg.Agents, func(e config.Entry) bool { return e.ID == id })
	if index < 0 {
		return exit.With(exit.Usage, "no agent %q is configured; see: mailboxd agents", id)
	}
	member := cfg.ReadAgents()[index]
	if err := member.Problem(); err != nil {
		return fmt.Errorf("test agent %s: %w", id, err)
	}
	request, err := testTask(cfg.Agents[index], member.Subject.Manifest, timeout).request(cmd)
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
