// Command bench measures mailboxd beside the alternatives of its users. The contenders of a
// measure run in turns, on one machine and one file system, each time in a new directory, and a
// run counts only if its results are correct.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

// A measure is a part of the table.
type measure struct {
	name string // its name in -only
	run  func(context.Context, *lab) ([]row, error)
}

// measures are all measures, in the order of the table.
var measures = []measure{
	{"floor", floor},
	{"true", spawnTrue},
	{"static", spawnStatic},
	{"sh", spawnShell},
	{"queues", queues},
	{"worker", workers},
	{"latency", latency},
	{"backlog", backlog},
	{"restart", restart},
	{"idle", idle},
	{"scale", scale},
	{"acp", acp},
	{"broker", brokerCalls},
	{"gateway", throughGateway},
	{"runners", runners},
}

// plays are what this program does as a part of a measure, by its only argument.
var plays = map[string]func() error{
	playWorker: func() error { answerLines(os.Stdin, os.Stdout); return nil },
	playACP:    func() error { return askForCalls(os.Stdin, os.Stdout) },
	playTools:  func() error { return offerTools(context.Background()) },
}

func main() {
	do := bench
	if len(os.Args) == 2 && plays[os.Args[1]] != nil {
		do = plays[os.Args[1]]
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench() error {
	var l lab
	only := flag.String("only", "", "measures to make, separated by commas: "+strings.Join(names(), ", "))
	flag.IntVar(&l.rounds, "rounds", 5, "how often each contender runs")
	flag.IntVar(&l.tasks, "n", 5000, "tasks of a run; slow contenders have fewer")
	flag.BoolVar(&l.long, "long", false, "a million tasks where it is said; needs 16 GB and half an hour more")
	into := flag.String("md", "", "also write the table to this file")
	where := flag.String("dir", "", "directory to work in (default the system's for temporary files)")
	flag.Parse()
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := l.open(ctx, *where); err != nil {
		return err
	}
	defer l.close()
	table, err := l.measure(ctx, chosen)
	fmt.Print(table)
	if *into != "" {
		err = errors.Join(err, os.WriteFile(*into, []byte(table), 0o644))
	}
	return err
}

// measure runs the measures one after the other. It returns the table of those before the first
// error.
func (l *lab) measure(ctx context.Context, chosen []measure) (string, error) {
	var rows []row
	for _, m := range chosen {
		l.say("%s", m.name)
		more, err := m.run(ctx, l)
		if err != nil {
			return table(l.machine(), rows), fmt.Errorf("measure %s: %w", m.name, cmp.Or(context.Cause(ctx), err))
		}
		for i := range more {
			more[i].measure = m.name
		}
		rows = append(rows, more...)
	}
	return table(l.machine(), rows), nil
}

func names() (all []string) {
	for _, m := range measures {
		all = append(all, m.name)
	}
	return all
}

// choose returns the measures in a list of names; all for an empty list.
func choose(list string) (chosen []measure, err error) {
	if list == "" {
		return measures, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		i := slices.Index(names(), name)
		if i < 0 {
			return nil, fmt.Errorf("no measure is called %q; there are %s", name, strings.Join(names(), ", "))
		}
		chosen = append(chosen, measures[i])
	}
	return chosen, nil
}
