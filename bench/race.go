package main

import (
	"context"
	"fmt"
	"time"
)

// A contender is one way to do tasks, each time in a new directory.
type contender struct {
	name  string
	count int // of tasks
	keeps string
	needs []string // required programs
	run   attempt
}

// An attempt does count tasks in a directory, and returns the effort.
type attempt func(ctx context.Context, dir string, count int) (effort, error)

// of returns the contender with another number of tasks.
func (c contender) of(count int) contender {
	c.count = count
	return c
}

// row returns the row of the contender in the table, with its runs.
func (c contender) row(runs ...effort) row {
	r := row{who: c.name, tasks: c.count, keeps: c.keeps, unit: "tasks/s"}
	for _, took := range runs {
		r.got = append(r.got, took.rate(c.count))
		r.cpu = append(r.cpu, took.each(c.count))
	}
	return r
}

// limit returns the time limit of a run. The slow contenders have few tasks.
func limit(count int) time.Duration { return 10*time.Minute + time.Duration(count)*time.Millisecond }

// race runs the contenders in turns. It returns the tasks per second of each in each round,
// also relative to the first contender.
func (l *lab) race(ctx context.Context, all ...contender) ([]row, error) {
	runs := make([][]effort, len(all))
	for round := range l.rounds {
		for turn := range all {
			i := (turn + round) % len(all) // so that each is first in some round
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

// once runs a contender once.
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
