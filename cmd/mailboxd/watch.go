package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/config"
	"mailboxd/internal/term"
	"mailboxd/watcher"
)

// frameGap is the least time between two frames: more is not seen.
const frameGap = 200 * time.Millisecond

// follow shows the list until the command is stopped.
func (f *psFlags) follow(cmd *cobra.Command, d *desk) error {
	show := (&ticker{flags: f, seen: map[envelope.ID]string{}}).show
	if term.ScreenOf(cmd.OutOrStdout()).Redraws && !f.asJSON {
		show = (&frames{flags: f}).show
	}
	return atEachChange(cmd.Context(), d.cfg, func(ctx context.Context, d *desk) error {
		return show(ctx, d, term.ScreenOf(cmd.OutOrStdout()))
	})
}

// atEachChange calls look at once, when the ledger may have changed, and each second,
// until ctx ends or look fails. Each time the desk is another: what is followed
// may outlast the daemon, or be there before it.
func atEachChange(ctx context.Context, cfg config.Config, look func(context.Context, *desk) error) error {
	_, state, err := emptyDesk(cfg)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	err = watcher.Watch(ctx, []string{state}, time.Second, func() {
		if ctx.Err() != nil {
			return
		}
		began := time.Now()
		if failed = atFreshDesk(context.WithoutCancel(ctx), cfg, look); failed != nil {
			stop()
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(frameGap, 4*time.Since(began))): // of a great many tasks, a look is no light one
		}
	})
	return errors.Join(failed, err)
}

func atFreshDesk(ctx context.Context, cfg config.Config, look func(context.Context, *desk) error) error {
	desk, err := deskOf(ctx, cfg)
	if err != nil {
		return err
	}
	defer desk.Close()
	return look(ctx, desk)
}

// frames shows the list over itself, as much of it as the screen has rows for.
type frames struct {
	flags *psFlags
	drawn int // rows of the frame before
}

func (f *frames) show(ctx context.Context, d *desk, s term.Screen) error {
	now := time.Now()
	list, err := d.list(ctx, f.flags, now)
	if err != nil {
		return err
	}
	around, err := d.around(ctx, list.tasks, now)
	if err != nil {
		return err
	}
	return f.draw(s, around.table(list.tasks).Lines(s), list.more)
}

// draw writes over the frame before. Of a list that is too long the end is
// shown, where what is not done stands. There are more tasks than lines.
func (f *frames) draw(s term.Screen, lines []string, more int) error {
	if room := s.Rows - 1; len(lines) > room && room > 2 { // one for the cursor
		cut := len(lines) - room + 1
		lines = append([]string{lines[0], s.Paint(term.Faint, fmt.Sprintf("… %d more", cut+more))}, lines[cut+1:]...)
	}
	if len(lines) == 0 {
		lines = []string{"no tasks yet"}
	}
	frame := strings.Join(lines, "\x1b[K\n") + "\x1b[K\n\x1b[J"
	if f.drawn > 0 {
		frame = fmt.Sprintf("\x1b[%dA\r", f.drawn) + frame
	}
	f.drawn = len(lines)
	_, err := s.Write([]byte(frame))
	return err
}

// ticker prints a line for each task that has changed.
type ticker struct {
	flags *psFlags
	seen  map[envelope.ID]string
}

func (t *ticker) show(ctx context.Context, d *desk, s term.Screen) error {
	now := time.Now()
	var changed []client.Task
	seen := map[envelope.ID]string{}
	err := d.each(ctx, t.flags, now, func(page []client.Task) error {
		for _, task := range page {
			state := fmt.Sprint(task.Revision, task.State, task.Held, task.Attempt, task.Status, task.Until)
			if t.seen[task.ID] != state {
				changed = append(changed, task)
			}
			seen[task.ID] = state
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.seen = seen // what is not listed any more does not come back
	if t.flags.asJSON {
		return printEach(s, changed)
	}
	around, err := d.around(ctx, changed, now)
	if err != nil || len(changed) == 0 {
		return err
	}
	return around.feed(changed, s)
}

// feed prints one plain line for each task.
func (s surroundings) feed(tasks []client.Task, w term.Screen) error {
	for _, t := range tasks {
		_, err := fmt.Fprintln(w, strings.TrimSpace(strings.Join([]string{
			s.now.Local().Format(time.TimeOnly), term.OneLine(string(t.ID)), term.OneLine(stateOf(t)), term.OneLine(t.Agent), term.OneLine(s.wait(t)),
		}, "  ")))
		if err != nil {
			return err
		}
	}
	return nil
}
