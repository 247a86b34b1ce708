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

// most is how long a run may take.
const most = 10 * time.Minute

// race has contenders run by turns and returns how many tasks a second each
// did in each round, beside the first of them.
func (l *lab) race(ctx context.Context, all ...contender) ([]row, error) {
	var rows []row
	var there []contender
	for _, c := range all {
		r := row{who: c.name, tasks: c.count, keeps: c.keeps, unit: "tasks/s"}
		if lacks := missing(c.needs...); lacks != "" {
			r.note = lacks + " is not installed"
			c.run = nil
		}
		rows, there = append(rows, r), append(there, c)
	}
	for round := range l.rounds {
		for turn := range there {
			i := (turn + round) % len(there) // nobody is always the first
			if there[i].run == nil {
				continue
			}
			took, err := l.once(ctx, there[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", there[i].name, err)
			}
			rate := float64(there[i].count) / took.wall.Seconds()
			l.say("  %-45s %8.0f/s", there[i].name, rate)
			rows[i].got = append(rows[i].got, rate)
			rows[i].cpu = append(rows[i].cpu, took.cpu.Seconds()*1e6/float64(there[i].count))
		}
	}
	for i := range rows {
		rows[i].beside = ratios(rows[i].got, rows[0].got)
	}
	return rows, nil
}

// once is one run of a contender.
func (l *lab) once(ctx context.Context, c contender) (took effort, err error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return took, l.in(func(dir string) (err error) {
		took, err = c.run(ctx, dir, c.count)
		return err
	})
}
