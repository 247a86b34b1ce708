package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// The gaps between tasks of an idle daemon. They are longer than all work that a task leaves.
const shortest, longest = 10 * time.Millisecond, 30 * time.Millisecond

// loadGap is the interval between tasks under load.
const loadGap = 5 * time.Millisecond

// latency measures the time of one task: until its process has started, by the clock of the
// process, and until its result file is readable.
func latency(ctx context.Context, l *lab) ([]row, error) {
	idle := min(l.tasks, 300)
	var rows []row
	for _, c := range []struct {
		name    string
		command string
		count   int
		gap     func() time.Duration
	}{
		{"idle, static stamp", l.tools.stamp, idle, randomGap},
		{"idle, /bin/true", "/bin/true", idle, randomGap},
		{fmt.Sprintf("%d a second, static stamp", time.Second/loadGap), l.tools.stamp, min(l.tasks, 2000), func() time.Duration { return loadGap }},
	} {
		way := newWay(c.name, c.count)
		for range l.rounds {
			err := l.in(ctx, func(dir string) error { return l.timed(ctx, dir, c.command, c.count, c.gap, way) })
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
		}
		l.say("  %s", c.name)
		rows = append(rows, way.rows()...)
	}
	return rows, nil
}

func randomGap() time.Duration { return shortest + rand.N(longest-shortest) }

// A way has the latencies of one kind of task, a quantile of each round.
type way struct {
	name  string
	count int
	parts map[string][]float64 // by end and quantile, in ms
}

var quantiles = []struct {
	name  string
	share float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}}

var ends = []string{"process started", "result visible"}

func newWay(name string, count int) *way {
	return &way{name: name, count: count, parts: map[string][]float64{}}
}

// add adds the quantiles of a round for one end; nothing without data.
func (w *way) add(end string, took []float64) {
	if len(took) == 0 {
		return
	}
	for _, q := range quantiles {
		key := end + ", " + q.name
		w.parts[key] = append(w.parts[key], quantile(took, q.share))
	}
}

func (w *way) rows() (rows []row) {
	for _, end := range ends {
		for _, q := range quantiles {
			if got := w.parts[end+", "+q.name]; got != nil {
				rows = append(rows, row{who: w.name + ": " + end + ", " + q.name, tasks: w.count, unit: "ms", got: got})
			}
		}
	}
	return rows
}

// timed runs one round of paced tasks, and adds its latencies to w.
func (l *lab) timed(ctx context.Context, dir, command string, count int, gap func() time.Duration, w *way) error {
	ctx, cancel := context.WithTimeout(ctx, limit(count))
	defer cancel()
	return l.served(dir, processes(2, command), count+1, func(h *daemon, results *tally) error {
		if err := h.start(ctx); err != nil {
			return err
		}
		began, visible, err := pacedTasks(ctx, h, results, count, gap)
		if err := errors.Join(err, h.stop()); err != nil {
			return err
		}
		started, err := h.stamps(began)
		w.add(ends[0], started)
		w.add(ends[1], apart(began, visible))
		return err
	})
}

// pacedTasks appends tasks with a gap between them, and returns when each was appended and when
// its result appeared. The first one warms up.
func pacedTasks(ctx context.Context, h *daemon, results *tally, count int, gap func() time.Duration) (began, visible map[string]time.Time, err error) {
	began, visible = map[string]time.Time{}, map[string]time.Time{}
	if err := h.awaitReady(ctx); err != nil {
		return nil, nil, err
	}
	if err := appendLines(h.tasks(), count, count+1); err != nil {
		return nil, nil, err
	}
	if err := results.all(ctx, 1); err != nil {
		return nil, nil, err
	}
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		for len(visible) < count {
			ids, at, err := results.next(ctx)
			if err != nil {
				return err
			}
			for _, id := range ids {
				visible[id] = at
			}
		}
		return nil
	})
	work.Go(func() error {
		due := time.Now()
		for n := range count {
			due = due.Add(gap())
			time.Sleep(time.Until(due))
			began[id(n)] = time.Now()
			if err := appendLines(h.tasks(), n, n+1); err != nil {
				return err
			}
		}
		return nil
	})
	return began, visible, work.Wait()
}

// apart returns the differences between the times of each id, in ms.
func apart(from, to map[string]time.Time) (took []float64) {
	for id, at := range from {
		took = append(took, to[id].Sub(at).Seconds()*1000)
	}
	return took
}

// stamps reads from the results when the processes started; nothing if the results have no
// stamps.
func (h *daemon) stamps(began map[string]time.Time) (took []float64, err error) {
	for id, at := range began {
		raw, err := os.ReadFile(filepath.Join(h.results(), id+".json"))
		if err != nil {
			return nil, err
		}
		var result struct{ Output struct{ Summary string } }
		if err := json.Unmarshal(raw, &result); err != nil {
			return nil, err
		}
		ns, err := strconv.ParseInt(result.Output.Summary, 10, 64)
		if result.Output.Summary == "" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the stamp of %s: %w", id, err)
		}
		took = append(took, time.Unix(0, ns).Sub(at.Round(0)).Seconds()*1000) // Round: both use the system's clock
	}
	return took, nil
}
