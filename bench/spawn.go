package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// The data that survive a power cut.
const (
	keepsAll     = "each task and result"
	keepsNothing = "nothing"
	keepsResults = "results, not what waits"
)

func spawnTrue(ctx context.Context, l *lab) ([]row, error)   { return l.spawn(ctx, "/bin/true") }
func spawnStatic(ctx context.Context, l *lab) ([]row, error) { return l.spawn(ctx, l.tools.static) }
func spawnShell(ctx context.Context, l *lab) ([]row, error) {
	return l.spawn(ctx, "/bin/sh", "-c", "true")
}

// spawn measures tasks with a process each, two at a time, beside programs that read a list.
func (l *lab) spawn(ctx context.Context, command ...string) ([]row, error) {
	ours := processes(2, command...)
	return l.race(ctx,
		contender{name: "xargs -P2 -n1", count: l.tasks, keeps: keepsNothing, needs: []string{"xargs"}, run: xargs(command)},
		contender{name: callsAlone, count: l.tasks, keeps: keepsAll, run: alone(command)},
		contender{name: "mailboxd, a backlog", count: l.tasks, keeps: keepsAll, run: l.drained(ours)},
		contender{name: "mailboxd, appended while it runs", count: l.tasks, keeps: keepsAll, run: l.streamed(ours)},
		contender{name: "Python poller", count: l.tasks, keeps: keepsNothing, needs: []string{"python3"}, run: l.poller("nosync", command)},
		contender{name: "Python poller, fsync", count: l.tasks, keeps: keepsResults, needs: []string{"python3"}, run: l.poller("sync", command)},
	)
}

// xargs is the floor: processes and nothing else. A failed process makes it fail.
func xargs(command []string) attempt {
	return func(ctx context.Context, dir string, count int) (effort, error) {
		list := filepath.Join(dir, "ids")
		if err := writeIDs(list, count); err != nil {
			return effort{}, err
		}
		in, err := os.Open(list)
		if err != nil {
			return effort{}, err
		}
		defer in.Close()
		cmd := exec.CommandContext(ctx, "xargs", append([]string{"-P2", "-n1"}, command...)...)
		cmd.Stdin = in
		begin := time.Now()
		err = cmd.Run()
		return effort{time.Since(begin), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, err
	}
}
