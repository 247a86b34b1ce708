package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/cli/compose"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/running/agent"
)

// askFlags are sendFlags for a task in words.
type askFlags struct {
	sendFlags
	noWait  bool
	earlier string // the task whose session is continued, as the user named it
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

With --continue ID, there is no AGENT: the agent of that task goes on in the same session
and directory, and with the same tools, or with those of --tools. The task must be done.

On a terminal, ask waits for the answer. If the task waits for a person, such as for
an approval or a login, ask names the command; elsewhere than on a terminal, it ends
then. The answer goes to standard output, everything else to standard error.

Exit codes: 0 done, 3 ended in error, 4 rejected or denied, 5 timed out, 8 waits for
a person.`,
		Example: `  mailboxd ask claude "Why is TestReload flaky?" --in ~/src/app
  mailboxd ask codex "Fix the typo in README.md" --in . --label area=docs
  mailboxd ask claude "Fix the flaky test" --in . --worktree --edit
  mailboxd ask --continue last "Now add a test for it"
  git diff | mailboxd ask reviewer - --wait >review.txt
  mailboxd ask claude "Update the dependencies" --in . --no-wait`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.earlier != "" {
				return cobra.MinimumNArgs(1)(cmd, args)
			}
			return cobra.MinimumNArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.earlier != "" {
				return askFurther(cmd, g, f, args)
			}
			return askAgent(cmd, g, f, args[0], args[1:])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.workdir, "in", "", "`DIR` in which the agent works (default: the agent's own)")
	flags.BoolVar(&f.worktree, "worktree", false, "in a clone of the repository there; see diff and apply")
	flags.StringVar(&f.base, "base", "", "with a worktree: begin with this `BRANCH`, tag or commit (default: HEAD)")
	flags.StringVar(&f.earlier, "continue", "", "`ID` of a done task: go on in its session, in the same directory")
	flags.BoolVar(&f.edit, "edit", false, "it is to edit files: a run that changes none needs a review")
	flags.StringVar(&f.role, "role", "", "target_role (default: one that the agent has)")
	flags.StringVar(&f.taskType, "type", "", "task_type (default: one that the agent takes)")
	flags.BoolVar(&f.wait, "wait", false, "wait for the answer, also without a terminal")
	flags.BoolVar(&f.noWait, "no-wait", false, "print the id of the task, and don't wait")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON: the result, or the task with --no-wait")
	flags.DurationVar(&f.timeout, "timeout", 0, "how long to wait; 0: no limit")
	cmd.MarkFlagsMutuallyExclusive("wait", "no-wait")
	for _, flag := range []string{"in", "worktree", "base"} {
		cmd.MarkFlagsMutuallyExclusive("continue", flag)
	}
	f.add(cmd)
	completeFlag(cmd, "continue", completeTasks(g, true))
	return cmd
}

// askFurther asks the agent of an earlier task in its session.
func askFurther(cmd *cobra.Command, g *globals, f *askFlags, words []string) error {
	var agent string
	look := withReader(g, func(cmd *cobra.Command, _ []string, r *reader.Reader) error {
		id, err := r.Find(cmd.Context(), f.earlier)
		if err != nil {
			return err
		}
		before, err := r.Details(cmd.Context(), id)
		if err != nil {
			return err
		}
		terms, err := compose.Continued(before)
		if err != nil {
			return err
		}
		agent, f.continues = before.Task.Agent, id
		f.workdir, f.worktree, f.base = terms.Workdir(), terms.Worktree(), terms.Base()
		f.role, f.taskType = cmp.Or(f.role, terms.Role), cmp.Or(f.taskType, terms.Type)
		f.inherit(cmd, terms)
		return nil
	})
	if err := look(cmd, words); err != nil {
		return err
	}
	return askAgent(cmd, g, f, agent, words)
}

// inherit takes the tools and the sensitivity of an earlier task, unless flags have others.
func (f *askFlags) inherit(cmd *cobra.Command, earlier envelope.Task) {
	f.extra = map[string]any{}
	if earlier.AllowedTools != nil && !cmd.Flags().Changed("tools") {
		f.extra["allowed_tools"] = earlier.AllowedTools
	}
	if earlier.Sensitivity != envelope.Public && !cmd.Flags().Changed("sensitivity") {
		f.extra["sensitivity"] = earlier.Sensitivity.String()
	}
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
		_, err := fmt.Fprintln(out, reader.ShortID(cmd.Context(), at, s.ID))
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
	raw, err := reader.Waiter{Out: out, Err: cmd.ErrOrStderr(), At: at, JSON: f.asJSON, Attended: term.IsTerminal(cmd.ErrOrStderr())}.Await(ctx, s)
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
	text, err := compose.Words(cmd.InOrStdin(), words, cfg.Intake.MaxLineBytes)
	if err != nil {
		return nil, err
	}
	f.agent, f.description = id, text
	if f.continues == "" {
		f.workdir = compose.Directory(f.workdir)
	}
	f.fit(cfg.Agents[index], member.Subject.Manifest, "ask")
	request, err := f.request(cmd)
	if err == nil {
		err = f.check(cmd, cfg, request)
	}
	if err != nil {
		return nil, err
	}
	state, err := cfg.StateDirOf(cfg.Root)
	return request, cmp.Or(err, compose.CheckPlace(member.Binding, agent.OwnDirs{Root: cfg.Root, State: state}, request))
}
