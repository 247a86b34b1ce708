package main

import (
	"context"
	"os"
)

// many is the number of processes, one after the other, of -long. A million would take a
// quarter of an hour and 20 GB, and would show no more.
const many = 100_000

// scale measures whether a task costs more when there are more tasks.
func scale(ctx context.Context, l *lab) ([]row, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	stay := contender{name: "Go worker, 16 in flight", run: l.drained(resident(16, self, playWorker))}
	each := contender{name: "static, 2 at a time", run: l.drained(processes(2, l.tools.static))}
	var rows []row
	for _, c := range []contender{stay, each} {
		more, err := l.race(ctx, c.of(l.tasks/5), c.of(2*l.tasks))
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	p, err := l.lived(ctx)
	if err != nil {
		return nil, err
	}
	rows = append(rows, stay.of(p.tasks).row(p.took))
	if !l.long {
		return rows, nil
	}
	took, err := l.once(ctx, each.of(many))
	return append(rows, each.of(many).row(took)), err
}
