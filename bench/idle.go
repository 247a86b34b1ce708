package main

import (
	"context"
	"errors"
	"time"
)

// settling is the time after its start, or its last task, until a daemon counts as idle: by
// then it has unmapped its pages. watching is the length of the measurement, which includes a
// rescan.
const settling, watching = 25 * time.Second, 30 * time.Second

// idle measures the cost of an idle daemon.
func idle(ctx context.Context, l *lab) ([]row, error) {
	rows := []row{
		{who: "RSS of the daemon, no task yet", unit: "MB"}, {who: "of that, in no file", unit: "MB"},
		{who: "RSS of the daemon, after 100 tasks", unit: "MB"}, {who: "of that, in no file", unit: "MB"},
		{who: "RSS of its keeper", unit: "MB"}, {who: "of that, in no file", unit: "MB"},
		{who: "waking up, both", unit: "times/s"},
	}
	for range min(l.rounds, 3) {
		got, err := l.idles(ctx)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			rows[i].got = append(rows[i].got, got[i])
		}
	}
	return rows, nil
}

func (l *lab) idles(ctx context.Context) (got []float64, err error) {
	const count = 100
	return got, l.in(ctx, func(dir string) error {
		return l.served(dir, processes(2, "/bin/true"), count, func(h *daemon, results *tally) error {
			if err := h.start(ctx); err != nil {
				return err
			}
			got, err = h.idles(ctx, results, count)
			return errors.Join(err, h.stop())
		})
	})
}

// idles measures a daemon before its tasks, and some time after them.
func (h *daemon) idles(ctx context.Context, results *tally, count int) ([]float64, error) {
	err := errors.Join(h.awaitReady(ctx), sleep(ctx, settling))
	fresh, failed := status(h.daemon.Process.Pid)
	if err := errors.Join(err, failed, appendLines(h.tasks(), 0, count), results.all(ctx, count)); err != nil {
		return nil, err
	}
	keeper, err := h.keeper()
	if err != nil {
		return nil, err
	}
	var waits [2]float64
	var us, its standing
	for i, nap := range []time.Duration{settling, watching} {
		if err := sleep(ctx, nap); err != nil {
			return nil, err
		}
		us, err = status(h.daemon.Process.Pid)
		its, failed = status(keeper)
		if err := errors.Join(err, failed); err != nil {
			return nil, err
		}
		waits[i] = us.waits + its.waits
	}
	const mb = 1e6
	return []float64{fresh.rss / mb, fresh.own / mb, us.rss / mb, us.own / mb, its.rss / mb, its.own / mb, (waits[1] - waits[0]) / watching.Seconds()}, nil
}

// sleep waits, at most until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
