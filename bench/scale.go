package main

import (
	"context"
	"os"
)

// scale measures whether a task costs more where there are more of them.
func scale(ctx context.Context, l *lab) ([]row, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	worker, static := l.drained(resident(16, self, playWorker)), l.drained(processes(2, l.tools.static))
	const of = "Go worker, 16 in flight"
	stay := []contender{{name: of, count: l.tasks / 5, run: worker}, {name: of, count: 2 * l.tasks, run: worker}}
	each := []contender{{name: "static, 2 at a time", count: l.tasks / 5, run: static}, {name: "static, 2 at a time", count: 2 * l.tasks, run: static}}
	large, _ := l.large()
	once := *l
	once.rounds = 1
	var rows []row
	for _, part := range []struct {
		lab *lab
		all []contender
	}{{l, stay}, {l, each}, {&once, []contender{{name: of, count: large, run: worker}}}} {
		more, err := part.lab.race(ctx, part.all...)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}
