package main

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/watcher"
)

func waitCommand(g *globals) *cobra.Command {
	timeout, asJSON := time.Duration(0), false
	cmd := &cobra.Command{
		Use:     "wait ID...",
		Short:   "Wait until tasks have their results",
		Example: "  mailboxd wait nightly-report --timeout 10m",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := g.load()
			if err != nil {
				return err
			}
			var tasks []sent
			for _, arg := range args {
				id, err := envelope.ParseID(arg)
				if err != nil {
					return exitWith(exitUsage, "task id %q %w", arg, err)
				}
				tasks = append(tasks, sent{ID: id})
			}
			return waitFor(cmd, cfg, tasks, timeout, asJSON)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait; 0 is for ever")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the results themselves")
	return cmd
}

// waitFor waits for the results of tasks, prints each as it comes, and
// returns the exit code of the worst.
func waitFor(cmd *cobra.Command, cfg config, tasks []sent, timeout time.Duration, asJSON bool) error {
	desk, err := deskOf(cfg)
	if err != nil {
		return err
	}
	defer desk.Close()
	ctx := cmd.Context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var worst error
	for _, task := range tasks {
		if err := taken(ctx, cfg, task); err != nil {
			return err
		}
		raw, err := desk.awaitResult(ctx, task.ID)
		if err != nil {
			return err
		}
		if err := printResult(cmd.OutOrStdout(), raw, asJSON); err != nil {
			return err
		}
		worst = worse(worst, verdictOf(raw))
	}
	return worst
}

// awaitResult blocks until results/<id>.json is there. It is final: results
// are put whole, and absent until then.
func (d *desk) awaitResult(ctx context.Context, id envelope.ID) ([]byte, error) {
	if id == "" {
		return nil, exitWith(exitRejected, "the task has no id that a result could be for; see rejected/")
	}
	watch, found := context.WithCancel(ctx)
	defer found()
	var raw []byte
	var work errgroup.Group
	work.Go(func() error {
		return watcher.Watch(watch, []string{filepath.Join(d.root, "results")}, time.Second, func() {
			text, err := d.readResult(id)
			if err == nil && raw == nil {
				raw = text
				found()
			}
		})
	})
	if err := work.Wait(); err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, exitWith(exitTimeout, "task %s has no result yet; is mailboxd serve running? see: mailboxd show %[1]s", id)
	}
	return raw, nil
}

// taken blocks until the daemon has read a line we sent and moved the result
// of an earlier request of the same id out of the way: until then, the result
// file is not the answer.
func taken(ctx context.Context, cfg config, task sent) error {
	for task.stale {
		fresh, err := answersUs(ctx, cfg, task)
		if err != nil || fresh {
			return err
		}
		select {
		case <-ctx.Done():
			return exitWith(exitTimeout, "task %s was not taken yet; is mailboxd serve running?", task.ID)
		case <-time.After(50 * time.Millisecond): // the ledger tells nobody that it has changed
		}
	}
	return nil
}

// answersUs reports whether a result of the task, there now or later, is one
// to the line we sent, or to one that says the same.
func answersUs(ctx context.Context, cfg config, task sent) (bool, error) {
	desk, err := deskOf(cfg)
	if err != nil || desk.memory == nil {
		return false, err
	}
	defer desk.Close()
	ctx = context.WithoutCancel(ctx)
	files, err := desk.memory.Files(ctx)
	if err != nil {
		return false, err
	}
	read := slices.ContainsFunc(files, func(f ledger.File) bool { return f.Path == task.File && f.Offset >= task.End })
	if !read {
		return false, nil
	}
	row, err := desk.latest(ctx, task.ID)
	return err == nil && !row.Replaces, err
}
