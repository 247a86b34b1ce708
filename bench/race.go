package main

import (
	"context"
	"fmt"
	"time"
)

// A contender does tasks, each time in a new directory.
type contender struct {
	name  string
	count int // of tasks
	keeps string
	needs []string // programs that have to be installed
	run   attempt
}

// An attempt does so many tasks in a directory, and says what that took.
type attempt func(ctx context.Context, dir string, count int) (effort, error)

// of is a contender with so many tasks.
func (c contender) of(count int) contender {
	c.count = count
	return c
}

// row is a contender's in the table, with its runs.
func (c contender) row(runs ...effort) row {
	r := row{who: c.name, tasks: c.count, keeps: c.keeps, unit: "tasks/s"}
	for _, took := range runs {
		r.got = append(r.got, took.rate(c.count))
		r.cpu = append(r.cpu, took.each(c.count))
	}
	return r
}

// limit is how long a run may take. The slow ones have few tasks.
func limit(count int) time.Duration { return 10*time.Minute + time.Duration(count)*time.Millisecond }

// race has contenders run by turns and returns how many tasks a second each
// did in each round, beside the first of them.
func (l *lab) race(ctx context.Context, all ...contender) ([]row, error) {
	runs := make([][]effort, len(all))
	for round := range l.rounds {
		for turn := range all {
			i := (turn + round) % len(all) // nobody is always the first
			if missing(all[i].needs...) != "" {
				continue
			}
			took, err := l.once(ctx, all[i])
			if err != nil {
				return nil, err
			}
			runs[i] = append(runs[i], took)
		}
	}
	var rows []row
	for i, c := range all {
		r := c.row(runs[i]...)
		if lacks := missing(c.needs...); lacks != "" {
			r.note = lacks + " is not installed"
		}
		rows = append(rows, r)
		rows[i].beside = ratios(r.got, rows[0].got)
	}
	return rows, nil
}

// once is one run of a contender.
func (l *lab) once(ctx context.Context, c contender) (took effort, err error) {
	err = l.in(ctx, func(dir string) (err error) {
		ctx, cancel := context.WithTimeout(ctx, limit(c.count))
		defer cancel()
		took, err = c.run(ctx, dir, c.count)
		return err
	})
	if err != nil {
		return took, fmt.Errorf("%s: %w", c.name, err)
	}
	l.say("  %-53s %8.0f/s %6.0f us", c.name, took.rate(c.count), took.each(c.count))
	return took, nil
}
