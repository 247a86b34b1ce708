package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// workers measures tasks of resident processes, one and 16 at a time.
func workers(ctx context.Context, l *lab) ([]row, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	python := []string{"python3", filepath.Join(l.tools.dir, "worker.py")}
	var all []contender
	for _, w := range []struct {
		name    string
		command []string
	}{{"Go", []string{self, playWorker}}, {"Python", python}} {
		for _, inFlight := range []int{16, 1} {
			p := resident(inFlight, w.command...)
			name := fmt.Sprintf("%s worker, %d in flight", w.name, inFlight)
			all = append(all,
				contender{name: name + ", a backlog", count: 4 * l.tasks, keeps: keepsAll, needs: w.command[:1], run: l.drained(p)},
				contender{name: name + ", appended while it runs", count: 4 * l.tasks, keeps: keepsAll, needs: w.command[:1], run: l.streamed(p)})
		}
	}
	all = append(all, contender{name: fmt.Sprintf("%s, %d side by side", callsAlone, together), count: 4 * l.tasks, keeps: keepsAll, run: aloneWorker(self, playWorker)})
	return l.race(ctx, all...)
}
