package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
)

// follow shows the list until the command is stopped.
func (f *psFlags) follow(cmd *cobra.Command, d *reader.Reader) error {
	show := (&ticker{flags: f, seen: map[envelope.ID]string{}}).show
	if term.ScreenOf(cmd.OutOrStdout()).Redraws && !f.asJSON {
		show = (&frames{flags: f}).show
	}
	return d.Location.Watch(cmd.Context(), func(ctx context.Context, d *reader.Reader) error {
		return show(ctx, d, term.ScreenOf(cmd.OutOrStdout()))
	})
}

// frames redraws the list, as far as the screen has rows.
type frames struct {
	flags *psFlags
	drawn int // rows of the frame before
}

func (f *frames) show(ctx context.Context, d *reader.Reader, s term.Screen) error {
	now := time.Now()
	list, err := d.List(ctx, f.flags.query(now))
	if err != nil {
		return err
	}
	around, err := d.WaitContext(ctx, list.Tasks, now)
	if err != nil {
		return err
	}
	around.ShortIDs = true
	return f.draw(s, around.Table(list.Tasks).Lines(s), list.More)
}

// draw replaces the last frame. Of a long list it shows the end, with the open tasks.
// There are more tasks than lines.
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

func (t *ticker) show(ctx context.Context, d *reader.Reader, s term.Screen) error {
	now := time.Now()
	var changed []client.Task
	seen := map[envelope.ID]string{}
	err := d.Each(ctx, t.flags.query(now), func(page []client.Task) error {
		for _, task := range page {
			state := fmt.Sprint(task.Revision, task.State, task.Held, task.Attempt, task.Status, task.Until, task.CallbackFailed)
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
	if t.flags.asJSON {
		err = printEach(s, changed)
	} else {
		err = d.Feed(ctx, changed, now, s)
	}
	if err == nil { // otherwise the next look prints the changes
		t.seen = seen // without tasks that are not listed any more
	}
	return err
}
