package main

import (
	"context"
	"os/exec"
	"path/filepath"
)

// poller is the simplest program for the purpose. It gets its lines while it already waits for
// them.
func (l *lab) poller(sync string, command []string) attempt {
	prepare := func(ctx context.Context, d peerClient) (ending, error) {
		if err := appendLines(d.path("tasks/bench.jsonl"), 0, 0); err != nil {
			return nil, err
		}
		args := append([]string{filepath.Join(l.tools.dir, "poller.py"), d.path("tasks/bench.jsonl"), d.path("results"), d.path("tmp"), sync}, command...)
		return background(ctx, exec.CommandContext(ctx, "python3", args...))
	}
	submit := func(_ context.Context, d peerClient, count int) error {
		return appendLines(d.path("tasks/bench.jsonl"), 0, count)
	}
	return beside(placed, prepare, submit)
}
