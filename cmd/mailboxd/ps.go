package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
)

// psFlags say which tasks to list, and how.
type psFlags struct {
	states, labels, words    []string
	agent, requester         string
	since                    time.Duration
	held, all, asJSON, watch bool
}

func psCommand(g *globals) *cobra.Command {
	f := &psFlags{}
	cmd := &cobra.Command{
		Use:   "ps [WORDS]",
		Short: "List tasks and what they wait for",
		Long: `List unfinished tasks and what they wait for, after the 20 latest finished tasks
and the latest 1000 tasks with a failed callback. If more than 1000 tasks are
unfinished, ps lists the oldest and prints the number of the others; --all and
--json list every task. On a terminal, long lines are cut and random ids are short.

With WORDS, ps lists only tasks with each of them in the id, description, agent,
requester, type or labels; upper and lower case are the same. Of a running task it
prints the progress that the agent reported, or the last line that it wrote.

With --watch, ps runs until it is stopped. On a terminal it redraws the list after
each change; elsewhere it prints a line for each task that changes.`,
		Example: `  mailboxd ps
  mailboxd ps --held
  mailboxd ps flaky test --label area=auth
  mailboxd ps --state queued,running --agent reviewer --since 1h
  mailboxd ps --all --json |
      jq -r 'select(.status == "error").task_id'`,
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			f.words = args
			if err := f.check(); err != nil {
				return err
			}
			if f.watch {
				return f.follow(cmd, r)
			}
			return f.show(cmd.Context(), r, term.ScreenOf(cmd.OutOrStdout()))
		}),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.states, "state", nil, "only tasks in these states")
	flags.BoolVar(&f.held, "held", false, "only tasks that are held")
	flags.StringVar(&f.agent, "agent", "", "only tasks for this agent")
	flags.StringVar(&f.requester, "requester", "", "only tasks of this requester")
	flags.StringArrayVar(&f.labels, "label", nil, "only tasks with this label, as KEY=VALUE; may be repeated")
	flags.DurationVar(&f.since, "since", 0, "only tasks received within this time, such as 2h")
	flags.BoolVar(&f.all, "all", false, "every task, including all finished ones")
	flags.BoolVar(&f.watch, "watch", false, "run until stopped, and show changes")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object per line")
	g.addSocket(cmd)
	cmd.MarkFlagsMutuallyExclusive("held", "state")
	completeFlag(cmd, "state", completeStates)
	completeFlag(cmd, "agent", completeAgents(g))
	return cmd
}

func (f *psFlags) check() error {
	for _, s := range f.states {
		if !slices.Contains(task.States(), task.State(s)) {
			return exit.With(exit.Usage, "--state %s: not one of %v", s, task.States())
		}
	}
	if _, err := parseLabels(f.labels); err != nil {
		return err
	}
	if f.since < 0 {
		return exit.With(exit.Usage, "--since %s: must not be negative", f.since)
	}
	return nil
}

// query is what the flags ask for.
func (f *psFlags) query(now time.Time) reader.Query {
	filter := client.Filter{States: statesOf(f.states), Agent: f.agent, Requester: f.requester, Words: f.words, Labels: f.labels, Described: true}
	if f.held {
		filter.States = []task.State{task.Held, task.Review}
	}
	if f.since > 0 {
		filter.Since = now.Add(-f.since)
	}
	return reader.Query{Filter: filter, All: f.all}
}

// statesOf converts names of states.
func statesOf(names []string) (states []task.State) {
	for _, name := range names {
		states = append(states, task.State(name))
	}
	return states
}

// show prints the list once.
func (f *psFlags) show(ctx context.Context, d *reader.Reader, s term.Screen) error {
	now := time.Now()
	switch {
	case f.asJSON:
		return d.Each(ctx, f.query(now), func(page []client.Task) error { return printEach(s, page) })
	case f.all:
		return f.showAll(ctx, d, s, now)
	}
	list, err := d.List(ctx, f.query(now))
	if err != nil {
		return err
	}
	around, err := d.WaitContext(ctx, list.Tasks, now)
	if err != nil {
		return err
	}
	around.ShortIDs = s.Columns > 0
	if len(list.Tasks) == 0 && s.Columns > 0 {
		s.Line("no open or recent task matches; see: mailboxd ps --all")
	}
	if err := around.Table(list.Tasks).Print(s); err != nil {
		return err
	}
	if list.More > 0 {
		s.Line("%s", s.Paint(term.Faint, fmt.Sprintf("… %d more; see: mailboxd ps --all", list.More)))
	}
	return nil
}

// showAll prints a table of any length, in pages. Its columns only become wider.
func (f *psFlags) showAll(ctx context.Context, d *reader.Reader, s term.Screen, now time.Time) error {
	var widths []int
	return d.Each(ctx, f.query(now), func(page []client.Task) error {
		if len(page) == 0 {
			return nil
		}
		around, err := d.WaitContext(ctx, page, now)
		if err != nil {
			return err
		}
		around.ShortIDs, around.Described = s.Columns > 0, true // each page has the same columns
		part := around.Table(page)
		if widths != nil {
			part.Head = nil
		}
		part.Widths = widths
		err = part.Print(s)
		widths = part.Widths
		return err
	})
}

// printEach prints each task as a line of JSON.
func printEach(s term.Screen, tasks []client.Task) error {
	for _, t := range tasks {
		if err := term.PrintJSON(s, t); err != nil {
			return err
		}
	}
	return nil
}
