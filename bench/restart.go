package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// restart measures a start after many done tasks, until the daemon reports that it is ready,
// and the cost of commands that list the tasks.
func restart(ctx context.Context, l *lab) ([]row, error) {
	p, err := l.lived(ctx)
	if err != nil {
		return nil, err
	}
	rows := []row{
		{who: "from start to ready", unit: "ms"}, {who: "RSS when ready", unit: "MB"},
		{who: "mailboxd ps", unit: "ms"}, {who: "mailboxd ps --all --json", unit: "ms"},
		{who: "mailboxd show, one task", unit: "ms"},
	}
	for range l.rounds {
		got, err := p.daemon.again(ctx)
		if err != nil {
			return nil, err
		}
		for i := range got {
			rows[i].tasks, rows[i].got = p.tasks, append(rows[i].got, got[i])
		}
	}
	return rows, nil
}

// again restarts the daemon, and lists its tasks.
func (h *daemon) again(ctx context.Context) (got []float64, err error) {
	begin := time.Now()
	if err := h.start(ctx); err != nil {
		return nil, err
	}
	if err := h.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, h.stop())
	}
	got = append(got, since(begin))
	s, err := status(h.daemon.Process.Pid)
	got = append(got, s.rss/1e6)
	for _, args := range [][]string{{"ps"}, {"ps", "--all", "--json"}, {"show", id(0)}} {
		took, failed := h.asked(ctx, args...)
		err = errors.Join(err, failed)
		got = append(got, took)
	}
	return got, errors.Join(err, h.stop())
}

// asked returns the time of a command, in ms. The command must print something.
func (h *daemon) asked(ctx context.Context, args ...string) (ms float64, err error) {
	begin := time.Now()
	out, err := h.command(ctx, args...).Output()
	if err == nil && len(out) == 0 {
		err = errors.New("nothing is shown")
	}
	if err != nil {
		return 0, fmt.Errorf("mailboxd %s: %w", strings.Join(args, " "), err)
	}
	return since(begin), nil
}

// since returns the time since begin, in ms.
func since(begin time.Time) float64 { return time.Since(begin).Seconds() * 1000 }
