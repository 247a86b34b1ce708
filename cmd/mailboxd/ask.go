package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"mailboxd/internal/agent"
	"mailboxd/internal/ask"
	"mailboxd/internal/config"
	"mailboxd/internal/exit"
	"mailboxd/internal/term"
)

// askFlags are sendFlags for a task in words.
type askFlags struct {
	sendFlags
	noWait bool
}

func askCommand(g *globals) *cobra.Command {
	f := &askFlags{}
	cmd := &cobra.Command{
		Use:   "ask AGENT WORDS...",
		Short: "Ask an agent in words, and print the answer",
		Long: `Send a task to an agent in your words, and print the answer. With - for the words,
ask reads them from standard input. With --in, the agent works in that directory;
exec.workdirs of the agent must allow it. With --worktree, it works in a clone of the
repository there: mailboxd diff shows what it changed, mailboxd apply takes it over.

On a terminal, ask waits for the answer. If the task waits for a person, such as for
an approval or a login, ask names the command; elsewhere than on a terminal, it ends
then. The answer goes to standard output, everything else to standard error.

Exit codes: 0 done, 3 ended in error, 4 rejected or denied, 5 timed out, 8 waits for
a person.`,
		Example: `  mailboxd ask claude "Why is TestReload flaky?" --in ~/src/app
  mailboxd ask codex "Fix the typo in README.md" --in . --label area=docs
  mailboxd ask claude "Fix the flaky test" --in . --worktree
  git diff | mailboxd ask reviewer - --wait >review.txt
  mailboxd ask claude "Update the dependencies" --in . --no-wait`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return askAgent(cmd, g, f, args[0], args[1:]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.workdir, "in", "", "`DIR` in which the agent works (default: the agent's own)")
	flags.BoolVar(&f.worktree, "worktree", false, "in a clone of the repository there; see diff and apply")
	flags.StringVar(&f.base, "base", "", "with a worktree: begin with this `BRANCH`, tag or commit (default: HEAD)")
	flags.StringVar(&f.role, "role", "", "target_role (default: one that the agent has)")
	flags.StringVar(&f.taskType, "type", "", "task_type (default: one that the agent takes)")
	flags.BoolVar(&f.wait, "wait", false, "wait for the answer, also without a terminal")
	flags.BoolVar(&f.noWait, "no-wait", false, "print the id of the task, and don't wait")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON: the result, or the task with --no-wait")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long to wait; 0: no limit")
	cmd.MarkFlagsMutuallyExclusive("wait", "no-wait")
	f.add(cmd)
	return cmd
}

func askAgent(cmd *cobra.Command, g *globals, f *askFlags, id string, words []string) error {
	cfg, err := g.partial(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	request, err := f.compose(cmd, cfg, id, words)
	if err != nil {
		return err
	}
	out, at := cmd.OutOrStdout(), locationOf(cfg)
	wait := f.wait || !f.noWait && term.IsTerminal(out)
	s, err := appendTask(cmd.Context(), cfg, request, wait)
	switch {
	case err != nil:
		return err
	case !wait && !f.asJSON && term.IsTerminal(out):
		_, err := fmt.Fprintln(out, ask.ShortID(cmd.Context(), at, s.ID))
		return err
	case !wait:
		return s.Print(out, f.asJSON)
	}
	ctx := cmd.Context()
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	raw, err := ask.Waiter{Out: out, Err: cmd.ErrOrStderr(), At: at, JSON: f.asJSON, Attended: term.IsTerminal(cmd.ErrOrStderr())}.Await(ctx, s)
	if err != nil {
		return err
	}
	return verdictOf(raw)
}

// compose makes the line of a task in words, and checks its directory.
func (f *askFlags) compose(cmd *cobra.Command, cfg config.Config, id string, words []string) ([]byte, error) {
	index := slices.IndexFunc(cfg.Agents, func(e config.Entry) bool { return e.ID == id })
	if index < 0 {
		return nil, exit.With(exit.Usage, "no agent %q is configured; see: mailboxd agents", id)
	}
	member := cfg.ReadAgents()[index]
	if err := member.Problem(); err != nil {
		return nil, fmt.Errorf("ask %s: %w", id, err)
	}
	text, err := ask.Words(cmd.InOrStdin(), words, cfg.Intake.MaxLineBytes)
	if err != nil {
		return nil, err
	}
	f.agent, f.description, f.workdir = id, text, ask.Directory(f.workdir)
	f.fit(cfg.Agents[index], member.Subject.Manifest, "ask")
	request, err := f.request(cmd)
	if err == nil {
		err = f.check(cmd, cfg, request)
	}
	if err != nil {
		return nil, err
	}
	state, err := cfg.StateDirOf(cfg.Root)
	return request, cmp.Or(err, ask.CheckPlace(member.Binding, agent.OwnDirs{Root: cfg.Root, State: state}, request))
}
