package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// logsFlags say which output to print.
type logsFlags struct {
	attempt int
	stderr  bool
	follow  bool
	raw     bool
}

func logsCommand(g *globals) *cobra.Command {
	f := &logsFlags{}
	cmd := &cobra.Command{
		Use:   "logs ID...",
		Short: "Print the output of an agent",
		Long: `Print the standard output of the latest run of a task, and its standard error on
standard error. The events of Claude Code, Codex, Gemini CLI, opencode and Cursor
are shown as a transcript: the model's words, the tools it used, failures, time and
cost. Other output is printed as it is. What exec.worktree.setup printed comes first, on
standard error, each line after "setup: ". On a terminal, control characters are
escaped; with --raw, a pipe gets the bytes unchanged.`,
		Example: `  mailboxd logs nightly-report -f
  mailboxd logs nightly-report --raw | jq -r 'select(.type == "result").result'
  mailboxd logs nightly-report --attempt 1 --stderr | less`,
		Args: cobra.MinimumNArgs(1),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			if f.follow && len(args) > 1 {
				return exit.With(exit.Usage, "-f follows one task; %d were named", len(args))
			}
			return forEach(cmd, args, func(arg string) error {
				id, err := r.Find(cmd.Context(), arg)
				if err == nil && len(args) > 1 {
					fmt.Fprintf(cmd.OutOrStdout(), "==> %s <==\n", term.OneLine(string(id)))
				}
				if err != nil {
					return err
				}
				return f.logs(cmd, r, id)
			})
		}),
	}
	cmd.Flags().IntVar(&f.attempt, "attempt", 0, "the number of the run (default: the latest)")
	cmd.Flags().BoolVar(&f.stderr, "stderr", false, "print only standard error, on standard output")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "print the bytes that the agent wrote, not a transcript")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "follow the output until the run ends")
	return cmd
}

func (f *logsFlags) logs(cmd *cobra.Command, d *reader.Reader, id envelope.ID) error {
	ctx := cmd.Context()
	run, err := runOf(ctx, d, id, f.attempt)
	if f.follow && exit.CodeOf(err) == exit.Timeout {
		run, err = awaitRun(ctx, d.Location, id, f.attempt)
	}
	if err != nil {
		return err
	}
	t := f.tail(cmd, run.Dir)
	defer t.Close()
	if f.follow { // a run at a runner has a directory once it has written something
		err = t.Follow(ctx, func() bool { return hasEnded(d.Location, id, run) })
	} else {
		err = t.Copy()
	}
	if _, missing := os.Stat(run.Dir); err == nil && ctx.Err() == nil && errors.Is(missing, fs.ErrNotExist) {
		err = exit.With(exit.Failed, "run %d of %s has no directory: it is a worker's, has written nothing at its runner, "+
			"or is older than retention.runs keeps; see: %s", run.Attempt, id, view.Command("show", id))
	}
	return errors.Join(err, t.Close())
}

// tail starts at the beginning of the files in a run directory.
func (f *logsFlags) tail(cmd *cobra.Command, dir string) *reader.Tail {
	out, t := cmd.OutOrStdout(), reader.NewTail(dir)
	if f.stderr {
		t.Add(runner.StderrFile, sanitized(out))
		return t
	}
	errs := cmd.ErrOrStderr()
	if f.raw {
		out, errs = sanitized(out), sanitized(errs)
		t.Add(runner.SetupFile, errs)
	} else {
		t.Add(runner.SetupFile, view.NewSetupLog(sanitized(errs)))
		out, errs = view.NewTranscript(out), view.NewErrorLog(errs)
	}
	t.Add(runner.StdoutFile, out)
	t.Add(runner.StderrFile, errs)
	return t
}

// sanitized returns the writer, or one that escapes control characters for its terminal.
func sanitized(to io.Writer) io.Writer {
	if term.IsTerminal(to) {
		return term.NewSanitizer(to)
	}
	return to
}

// runOf returns a run of a task by its number, or the latest for 0. The error of a
// missing run has the code of a timeout.
func runOf(ctx context.Context, r *reader.Reader, id envelope.ID, attempt int) (client.Run, error) {
	file, err := r.Details(ctx, id)
	if err != nil {
		return client.Run{}, err
	}
	for i := len(file.Runs) - 1; i >= 0; i-- {
		if run := file.Runs[i]; attempt == 0 || run.Attempt == attempt {
			return run, nil
		}
	}
	state := view.StateOf(file.Task)
	switch {
	case file.Task.State == task.Done && len(file.Runs) == 0:
		return client.Run{}, exit.With(exit.Failed, "no agent ran for %s: it is %s; see: %s", id, state, view.Command("show", id))
	case file.Task.State == task.Done:
		return client.Run{}, exit.With(exit.Failed, "task %s has no run %d, only %d; see: %s", id, attempt, len(file.Runs), view.Command("show", id))
	}
	return client.Run{}, exit.With(exit.Timeout, "task %s has not run yet: it is %s; wait for it with: %s", id, state, view.Command("logs", id, "-f"))
}

// awaitRun waits until there is such a run.
func awaitRun(ctx context.Context, at reader.Location, id envelope.ID, attempt int) (run client.Run, err error) {
	following, found := context.WithCancel(ctx)
	defer found()
	err = exit.With(exit.Timeout, "task %s has not run yet; see: %s", id, view.Command("show", id))
	failed := at.Watch(following, func(ctx context.Context, d *reader.Reader) error {
		if run, err = runOf(ctx, d, id, attempt); exit.CodeOf(err) != exit.Timeout {
			found()
		}
		return nil
	})
	return run, cmp.Or(failed, err)
}

// hasEnded reports whether a run is over, by its own record or that of the ledger. After
// the death of its keeper a run has only the latter.
func hasEnded(at reader.Location, id envelope.ID, run client.Run) (ended bool) {
	if _, ended, err := runner.ReadExit(run.Dir); ended && err == nil {
		return true
	}
	err := at.Read(context.Background(), func(ctx context.Context, d *reader.Reader) error {
		now, err := runOf(ctx, d, id, run.Attempt)
		ended = !now.Finished.IsZero()
		return err
	})
	return ended && err == nil
}
