package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// queues measures the small programs that queue commands, each used as documented, with a
// result file for each task. They are slow, so they get fewer tasks.
func queues(ctx context.Context, l *lab) ([]row, error) {
	const command = "/bin/true"
	few := max(l.tasks/10, 10)
	return l.race(ctx,
		contender{name: "mailboxd, appended while it runs", count: l.tasks, keeps: keepsAll, run: l.streamed(processes(2, command))},
		contender{name: "tail -f into GNU parallel -j2", count: few, keeps: keepsNothing, needs: []string{"parallel", "tail"}, run: beside(written, tailParallel, submitIDs)},
		contender{name: "task-spooler, 2 slots", count: few, keeps: keepsNothing, needs: []string{"tsp"}, run: beside(written, spooler, submitSpool)},
		contender{name: "nq, one at a time", count: max(few/2, 10), keeps: keepsNothing, needs: []string{"nq"}, run: beside(written, nothing, submitNq)},
		contender{name: "inotifywait, read, jq", count: few, keeps: keepsNothing, needs: []string{"inotifywait", "jq", "sh"}, run: beside(written, l.loop, submitFiles)},
	)
}

// doing returns a shell command that does a task and writes a result file.
func doing(results string) string { return "/bin/true && echo ok >" + results + "/" }

// tailParallel begins a job when it has read the next line, so submitIDs adds some lines
// without a task.
func tailParallel(ctx context.Context, d peerClient) (ending, error) {
	if err := os.WriteFile(d.path("ids"), nil, 0o600); err != nil {
		return nil, err
	}
	return pipeline(ctx, exec.CommandContext(ctx, "sh", "-c", `tail -n +1 -f "$1" | parallel --will-cite -j2 "$2{}"`,
		"sh", d.path("ids"), doing(d.path("results"))))
}

func submitIDs(_ context.Context, d peerClient, count int) error {
	f, err := os.OpenFile(d.path("ids"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for n := range count {
		if _, err := fmt.Fprintln(f, id(n)); err != nil {
			return err
		}
	}
	_, err = f.WriteString(strings.Repeat("../tmp/behind\n", 4))
	return err
}

// spooler starts the server of task-spooler; the ending uses its own command.
func spooler(ctx context.Context, d peerClient) (ending, error) {
	end := func() (time.Duration, error) { return 0, spool(context.WithoutCancel(ctx), d, "-K").Run() }
	if err := spool(ctx, d, "-S", "2").Run(); err != nil {
		_, failed := end()
		return nil, errors.Join(err, failed)
	}
	return end, nil
}

func spool(ctx context.Context, d peerClient, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "tsp", args...)
	cmd.Env = append(os.Environ(), "TS_SOCKET="+d.path("socket"), "TMPDIR="+d.path("tmp"), "TS_MAXFINISHED=10")
	return cmd
}

func submitSpool(ctx context.Context, d peerClient, count int) error {
	return submitEach(count, func(id string) *exec.Cmd {
		return spool(ctx, d, "-n", "sh", "-c", doing(d.path("results"))+id)
	})
}

func nothing(context.Context, peerClient) (ending, error) {
	return func() (time.Duration, error) { return 0, nil }, nil
}

func submitNq(ctx context.Context, d peerClient, count int) error {
	return submitEach(count, func(id string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "nq", "-q", "sh", "-c", doing(d.path("results"))+id)
		cmd.Env = append(os.Environ(), "NQDIR="+d.path("tmp"))
		return cmd
	})
}

func submitEach(count int, command func(id string) *exec.Cmd) error {
	for n := range count {
		if err := command(id(n)).Run(); err != nil {
			return fmt.Errorf("submit %s: %w", id(n), err)
		}
	}
	return nil
}

// loop starts a shell loop, and waits until it watches the directory.
func (l *lab) loop(ctx context.Context, d peerClient) (ending, error) {
	cmd := exec.CommandContext(ctx, "sh", filepath.Join(l.tools.dir, "loop.sh"), d.path("tasks"), d.path("results"), "/bin/true")
	words, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	end, err := pipeline(ctx, cmd)
	if err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(words); lines.Scan(); {
		if strings.Contains(lines.Text(), "Watches established") {
			return end, nil
		}
	}
	_, err = end()
	return nil, errors.Join(errors.New("inotifywait does not watch"), err)
}

func submitFiles(_ context.Context, d peerClient, count int) error {
	for n := range count {
		name := id(n) + ".json"
		if err := os.WriteFile(d.path("tmp/"+name), line(n), 0o600); err != nil {
			return err
		}
		if err := os.Rename(d.path("tmp/"+name), d.path("tasks/"+name)); err != nil {
			return err
		}
	}
	return nil
}
