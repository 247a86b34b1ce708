package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Sizes of the measures of runners.
const (
	stubSlots   = 256
	runnerSlots = 4
	manyRunners = 1000
	oneByOne    = 300         // tasks
	watchedFor  = time.Minute // what goes on by itself
)

var twoRunners = []string{"one", "two"}

// runners measures agents on runners: a hub and all runners are on this machine, too.
func runners(ctx context.Context, l *lab) ([]row, error) {
	const local = "/bin/true here, 2 at a time"
	here := processes(2, "/bin/true")
	rows, err := l.race(ctx,
		contender{name: local, count: l.tasks, keeps: keepsAll, run: l.streamed(here)},
		contender{name: "/bin/true at two runners, 4 at a time each", count: l.tasks, keeps: keepsAll, run: l.streamedToRunners()},
		contender{name: "a stub runner, no process", count: l.tasks, keeps: keepsAll, run: l.streamedToStub()},
	)
	if err != nil {
		return nil, err
	}
	for _, more := range []func(context.Context) ([]row, error){l.runnerLatency, l.idleRunners, l.manyStubs} {
		added, err := more(ctx)
		if err != nil {
			return nil, err
		}
		rows = append(rows, added...)
	}
	return rows, nil
}

// A remote is a daemon whose agent is on runners, and their hub.
type remote struct {
	*daemon
	hub     *hub
	results *tally
	runners []*exec.Cmd
}

// remotely calls do with a daemon whose agent is on runners, which do starts, and verifies all results.
func (l *lab) remotely(ctx context.Context, dir string, names []string, count int, do func(*remote) error) error {
	h, err := l.startHub(ctx, filepath.Join(dir, "hub"), names)
	if err != nil {
		return err
	}
	defer h.stop()
	p := plan{slots: 2, agent: "remote: {}", more: fmt.Sprintf("remote: {url: '%s', credentials: '%s'}\n", h.url, h.ownerFile())}
	return l.served(dir, p, count, func(d *daemon, results *tally) error {
		if err := d.start(ctx); err != nil {
			return err
		}
		r := &remote{daemon: d, hub: h, results: results}
		err := d.awaitReady(ctx)
		if err == nil {
			err = do(r)
		}
		for _, cmd := range r.runners {
			endServer(cmd)
		}
		return errors.Join(err, d.stop())
	})
}

const runnerConfiguration = `slots: %[2]d
state: %[1]s/state
worktrees_dir: %[1]s/worktrees
agents:
  - {id: bench, exec: {command: [/bin/true], output: text, stdin: none}, concurrency: %[2]d}
`

func (r *remote) runnerDir(name string) string { return filepath.Join(r.dir, "runner-"+name) }

// startRunners starts runners of /bin/true, and waits until the owner has tasks for them.
func (r *remote) startRunners(ctx context.Context, names []string) error {
	for _, name := range names {
		dir := r.runnerDir(name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		file := filepath.Join(dir, "runner.yaml")
		if err := os.WriteFile(file, fmt.Appendf(nil, runnerConfiguration, dir, runnerSlots), 0o600); err != nil {
			return err
		}
		log, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, r.program, "runner", "--connect", r.hub.url, "--credentials", r.hub.runnerFile(name), "--config", file)
		cmd.Env, cmd.Stderr = append(r.environment(), "XDG_RUNTIME_DIR="+dir), log
		err = errors.Join(cmd.Start(), log.Close())
		if err != nil {
			return err
		}
		r.runners = append(r.runners, cmd)
	}
	for {
		out, err := r.command(ctx, "runners", "--json").Output()
		if err != nil || strings.Count(string(out), `"status":"ready"`) == len(names) {
			return err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// spent returns the processor time of daemon, hub, runners and their keepers.
func (r *remote) spent() (cpu time.Duration) {
	cpu = r.daemon.spent() + processorTime(r.hub.cmd.Process.Pid)
	for _, cmd := range r.runners {
		cpu += processorTime(cmd.Process.Pid)
	}
	for _, name := range twoRunners {
		if keeper, _ := keeperOf(filepath.Join(r.runnerDir(name), "state")); keeper != 0 {
			cpu += processorTime(keeper)
		}
	}
	return cpu
}

// stream appends lines one by one, and waits for all results.
func (r *remote) stream(ctx context.Context, count int) (took effort, err error) {
	before, begin := r.spent(), time.Now()
	err = appendLines(r.tasks(), 0, count)
	if err == nil {
		err = r.results.all(ctx, count)
	}
	return effort{wall: time.Since(begin), cpu: r.spent() - before}, err
}

// streamedToRunners measures lines that are appended one by one while two runners wait for jobs.
func (l *lab) streamedToRunners() attempt {
	return func(ctx context.Context, dir string, count int) (took effort, err error) {
		err = l.remotely(ctx, dir, twoRunners, count, func(r *remote) error {
			err := r.startRunners(ctx, twoRunners)
			if err == nil {
				took, err = r.stream(ctx, count)
			}
			return err
		})
		return took, err
	}
}

// streamedToStub measures the same with a stub.
func (l *lab) streamedToStub() attempt {
	return func(ctx context.Context, dir string, count int) (took effort, err error) {
		names := []string{"stub"}
		err = l.remotely(ctx, dir, names, count, func(r *remote) error {
			return withStubs(ctx, r.hub, names, stubSlots, false, func(ctx context.Context, _ []*stub) (err error) {
				took, err = r.stream(ctx, count)
				return err
			})
		})
		return took, err
	}
}

// runnerLatency measures one task after the other, each from its line to its result file: here, and at a runner.
func (l *lab) runnerLatency(ctx context.Context) ([]row, error) {
	count := min(l.tasks, oneByOne)
	rows := []row{
		{who: "line to result here, p50", tasks: count, unit: "ms"}, {who: "line to result at a runner, p50", tasks: count, unit: "ms"},
		{who: "the difference", tasks: count, unit: "ms"}, {who: "line to result at a runner, p99", tasks: count, unit: "ms"},
	}
	for range l.rounds {
		here, err := l.linesHere(ctx, count)
		if err != nil {
			return nil, err
		}
		there, err := l.linesThere(ctx, count)
		if err != nil {
			return nil, err
		}
		p50, far := quantile(here, 0.5), quantile(there, 0.5)
		for i, figure := range []float64{p50, far, far - p50, quantile(there, 0.99)} {
			rows[i].got = append(rows[i].got, figure)
		}
	}
	return rows, nil
}

// linesHere times lines whose agent is on this machine.
func (l *lab) linesHere(ctx context.Context, count int) (took []float64, err error) {
	err = l.in(ctx, func(dir string) error {
		return l.served(dir, processes(2, "/bin/true"), count, func(h *daemon, results *tally) error {
			if err := h.start(ctx); err != nil {
				return err
			}
			err := h.awaitReady(ctx)
			if err == nil {
				took, err = timeLines(ctx, h, results, count)
			}
			return errors.Join(err, h.stop())
		})
	})
	return took, err
}

// linesThere times lines whose agent is on a runner.
func (l *lab) linesThere(ctx context.Context, count int) (took []float64, err error) {
	err = l.in(ctx, func(dir string) error {
		return l.remotely(ctx, dir, twoRunners[:1], count, func(r *remote) error {
			err := r.startRunners(ctx, twoRunners[:1])
			if err == nil {
				took, err = timeLines(ctx, r.daemon, r.results, count)
			}
			return err
		})
	})
	return took, err
}

// timeLines measures lines one after the other.
func timeLines(ctx context.Context, h *daemon, results *tally, count int) (all []float64, err error) {
	for n := range count {
		took, err := timeLine(ctx, h, results, n)
		if err != nil {
			return nil, err
		}
		all = append(all, took)
	}
	return all, nil
}

// idleRunners counts the messages of runners that have nothing to do.
func (l *lab) idleRunners(ctx context.Context) ([]row, error) {
	r := row{who: "messages of an idle runner in 10 s"}
	err := l.in(ctx, func(dir string) error {
		return l.remotely(ctx, dir, twoRunners, 0, func(m *remote) error {
			if err := errors.Join(m.startRunners(ctx, twoRunners), sleep(ctx, 2*time.Second)); err != nil {
				return err
			}
			sent, err := m.hub.messages(func() error { return sleep(ctx, watchedFor) })
			r.got = append(r.got, float64(sent)/float64(len(twoRunners))*10/watchedFor.Seconds())
			return err
		})
	})
	return []row{r}, err
}

// manyStubs measures the processor time of an owner with many runners, which are idle at first, and have a run each then.
func (l *lab) manyStubs(ctx context.Context) ([]row, error) {
	count := min(l.tasks, manyRunners)
	rows := []row{
		{who: fmt.Sprintf("owner of %d idle runners", count), unit: "% of a processor"},
		{who: fmt.Sprintf("owner of %d runners with a run each", count), unit: "% of a processor"},
		{who: "its RSS then", unit: "MB"},
	}
	names := make([]string, count)
	for n := range names {
		names[n] = fmt.Sprintf("stub%d", n)
	}
	err := l.in(ctx, func(dir string) error {
		return l.remotely(ctx, dir, names, count, func(r *remote) error {
			return withStubs(ctx, r.hub, names, 1, true, func(ctx context.Context, all []*stub) error {
				got, err := r.watchMany(ctx, l, all)
				for i, figure := range got {
					rows[i].got = append(rows[i].got, figure)
				}
				return err
			})
		})
	})
	return rows, err
}

// watchMany returns the figures of manyStubs.
func (r *remote) watchMany(ctx context.Context, l *lab, all []*stub) ([]float64, error) {
	l.say("  %d runners announced", len(all))
	idle, err := r.share(ctx)
	if err == nil {
		err = appendLines(r.tasks(), 0, len(all))
	}
	for running := 0; err == nil && running < len(all); {
		if err = sleep(ctx, 100*time.Millisecond); err == nil {
			running = 0
			for _, s := range all {
				running += s.running()
			}
		}
	}
	if err != nil {
		return nil, err
	}
	l.say("  %d runs began", len(all))
	busy, err := r.share(ctx)
	now, failed := status(r.daemon.daemon.Process.Pid)
	for _, s := range all {
		s.release(ctx)
	}
	return []float64{idle, busy, now.rss / 1e6}, errors.Join(err, failed, r.results.all(ctx, len(all)))
}

// share returns how much of a processor the owner uses, after a while.
func (r *remote) share(ctx context.Context) (float64, error) {
	pid := r.daemon.daemon.Process.Pid
	if err := sleep(ctx, settling); err != nil {
		return 0, err
	}
	before := processorTime(pid)
	err := sleep(ctx, watchedFor)
	return 100 * (processorTime(pid) - before).Seconds() / watchedFor.Seconds(), err
}
