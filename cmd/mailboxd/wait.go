package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/config"
	"mailboxd/internal/exit"
	"mailboxd/internal/term"
	"mailboxd/mailbox"
	"mailboxd/watcher"
)

func waitCommand(g *globals) *cobra.Command {
	timeout, asJSON := time.Duration(0), false
	cmd := &cobra.Command{
		Use:   "wait ID...",
		Short: "Wait until tasks have their results",
		Long: `Wait prints the result of each task, in the order asked, as soon as it is there, and
exits as the worst of them did: 0 done, 3 ended in error, 4 rejected or denied, 5
timed out. On a terminal it shows meanwhile where the task is and the last line of
its agent.`,
		Example: "  mailboxd wait nightly-report --timeout 10m\n  mailboxd wait part-1 part-2 && mailboxd send -f summary.json",
		Args:    cobra.MinimumNArgs(1),
		RunE: atDesk(g, func(cmd *cobra.Command, args []string, desk *desk) error {
			var tasks []sent
			for _, arg := range args {
				id, err := desk.expect(cmd.Context(), arg)
				if err != nil {
					return err
				}
				tasks = append(tasks, sent{ID: id})
			}
			return waitFor(cmd, desk.cfg, tasks, timeout, asJSON)
		}),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait; 0 is for ever")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the results, one JSON object per line")
	return cmd
}

// expect returns the id that arg names: the one that is known and begins so,
// or one that may still come.
func (d *desk) expect(ctx context.Context, arg string) (envelope.ID, error) {
	id, err := d.find(ctx, arg)
	if exit.CodeOf(err) != exit.NoTask {
		return id, err
	}
	if id, err = envelope.ParseID(arg); err != nil {
		return "", exit.With(exit.Usage, "task id %q %w", arg, err)
	}
	return id, nil
}

// waitFor waits for the results of tasks, prints each as it comes, and
// returns the exit code of the worst.
func waitFor(cmd *cobra.Command, cfg config.Config, tasks []sent, timeout time.Duration, asJSON bool) error {
	ctx := cmd.Context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var worst error
	for _, task := range tasks {
		raw, err := term.Spin(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), func(ctx context.Context) string { return latestWord(ctx, cfg, task.ID) },
			func() ([]byte, error) { return task.answer(ctx, cfg) })
		switch {
		case exit.CodeOf(err) != 0: // the others may have theirs
			worst = exit.Worse(worst, err)
			continue
		case err != nil:
			return err
		}
		if err := printResult(cmd.OutOrStdout(), raw, asJSON); err != nil {
			return err
		}
		worst = exit.Worse(worst, verdictOf(raw))
	}
	return worst
}

// answer blocks until the task has its result: first until the line we sent
// is taken, for what stands in the results before answers somebody else.
func (s sent) answer(ctx context.Context, cfg config.Config) ([]byte, error) {
	if s.File != "" && s.ID != "" {
		if err := s.taken(ctx, cfg); err != nil {
			return nil, err
		}
	}
	return awaitResult(ctx, cfg, s.ID)
}

// awaitResult blocks until results/<id>.json is there and is the answer to the
// latest revision. Results are put whole, and absent until then.
func awaitResult(ctx context.Context, cfg config.Config, id envelope.ID) ([]byte, error) {
	at, _, err := emptyDesk(cfg)
	if err != nil {
		return nil, err
	}
	if id == "" {
		return nil, exit.With(exit.Rejected, "the task has no id that a result could be for; see rejected/")
	}
	raw := answerNow(ctx, cfg, at.root, id) // a wait that is over looks too
	if raw == nil {
		watch, found := context.WithCancel(ctx)
		defer found()
		err = watcher.Watch(watch, []string{filepath.Join(at.root, "results")}, time.Second, func() {
			if raw = answerNow(ctx, cfg, at.root, id); raw != nil {
				found()
			}
		})
	}
	switch {
	case err != nil:
		return nil, err
	case raw == nil:
		ctx := context.WithoutCancel(ctx)
		word := latestWord(ctx, cfg, id)
		if !strings.Contains(word, "mailboxd serve") && !isServed(ctx, cfg) {
			word += "; mailboxd serve is not running"
		}
		return nil, exit.With(exit.Timeout, "task %s has no result yet: %s; see: %s", id, word, advise("show", id))
	}
	return raw, nil
}

// answerNow returns the answer to the latest revision of a task, or nil.
func answerNow(ctx context.Context, cfg config.Config, root string, id envelope.ID) []byte {
	raw, err := mailbox.ReadResult(root, id)
	if err != nil || !isFinal(context.WithoutCancel(ctx), cfg, id) {
		return nil
	}
	return raw
}

// isFinal asks anew each time: a wait may outlast the daemon.
func isFinal(ctx context.Context, cfg config.Config, id envelope.ID) bool {
	desk, err := deskOf(ctx, cfg)
	if err != nil {
		return false // asked again soon
	}
	defer desk.Close()
	return desk.final(ctx, id)
}
