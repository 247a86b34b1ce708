package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/exit"
	"mailboxd/internal/task"
	"mailboxd/internal/term"
)

// recent is how many finished tasks ps shows when nobody asks for more.
const recent = 20

// psFlags say which tasks to list, and how.
type psFlags struct {
	states                   []string
	agent, requester         string
	since                    time.Duration
	held, all, asJSON, watch bool
}

func psCommand(g *globals) *cobra.Command {
	f := &psFlags{}
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List tasks: what is not done and what it waits for, and the latest that are",
		Long: `Ps lists the tasks that are not done with what each waits for, below the 20
latest that are. Of more than 1000 that are not done it lists the oldest, the
queued ones last, and says how many there are; --all and --json leave none out.
On a terminal it cuts what is too wide; elsewhere it never does.

With --watch it goes on until it is stopped: on a terminal it shows the list anew
when something has changed; elsewhere it adds a line for each task that has.`,
		Example: `  mailboxd ps
  mailboxd ps --held
  mailboxd ps --state queued,running --agent reviewer --since 1h
  mailboxd ps --all --json | jq -r 'select(.status == "error").task_id'`,
		Args: cobra.NoArgs,
		RunE: atDesk(g, func(cmd *cobra.Command, _ []string, desk *desk) error {
			if err := f.check(); err != nil {
				return err
			}
			if f.watch {
				return f.follow(cmd, desk)
			}
			return f.show(cmd.Context(), desk, term.ScreenOf(cmd.OutOrStdout()))
		}),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.states, "state", nil, "only tasks in these states")
	flags.BoolVar(&f.held, "held", false, "only tasks that wait for a person, a window or a pause")
	flags.StringVar(&f.agent, "agent", "", "only tasks for this agent")
	flags.StringVar(&f.requester, "requester", "", "only tasks of this requester")
	flags.DurationVar(&f.since, "since", 0, "only tasks received within this time, as 2h")
	flags.BoolVar(&f.all, "all", false, "every task, the finished ones too")
	flags.BoolVar(&f.watch, "watch", false, "go on, and show what changes")
	flags.BoolVar(&f.asJSON, "json", false, "one JSON object per line")
	cmd.MarkFlagsMutuallyExclusive("held", "state")
	completes(cmd, "state", completeStates)
	completes(cmd, "agent", completeAgents(g))
	return cmd
}

func (f *psFlags) check() error {
	for _, s := range f.states {
		if !slices.Contains(task.States(), task.State(s)) {
			return exit.With(exit.Usage, "--state %s: not one of %v", s, task.States())
		}
	}
	if f.since < 0 {
		return exit.With(exit.Usage, "--since %s: must not be negative", f.since)
	}
	return nil
}

// filter is what the flags ask for.
func (f *psFlags) filter(now time.Time) client.Filter {
	filter := client.Filter{States: statesOf(f.states), Agent: f.agent, Requester: f.requester}
	if f.held {
		filter.States = []task.State{task.Held, task.Review}
	}
	if f.since > 0 {
		filter.Since = now.Add(-f.since)
	}
	return filter
}

// table shows tasks with what they wait for.
func (s surroundings) table(tasks []client.Task) *term.Table {
	list := &term.Table{Head: []string{"TASK", "STATE", "AGENT", "AGE", "WAITS FOR"}, Weights: []int{2, 2, 1, 0, 3}}
	for _, t := range tasks {
		list.Add(
			term.Cell{Text: term.OneLine(string(t.ID))},
			term.Cell{Text: term.OneLine(stateOf(t)), Paint: colourOf(t)},
			term.Cell{Text: term.OneLine(t.Agent)},
			term.Cell{Text: term.Age(s.now.Sub(t.Received))},
			term.Cell{Text: term.OneLine(s.wait(t))},
		)
	}
	return list
}

// stateOf says where a task is, or how it ended.
func stateOf(t client.Task) string {
	switch {
	case t.State != task.Done:
		return string(t.State)
	case t.Kind != "":
		return term.Escape(string(t.Status) + " (" + string(t.Kind) + ")")
	}
	return term.Escape(string(t.Status))
}

// whereabouts says with the reasons where a task is.
func whereabouts(t client.Task) string {
	if len(t.Held) == 0 {
		return stateOf(t)
	}
	reasons := make([]string, len(t.Held))
	for i, r := range t.Held {
		reasons[i] = string(r)
	}
	return string(t.State) + " (" + strings.Join(reasons, ", ") + ")"
}

// statesOf are the states that were named.
func statesOf(names []string) (states []task.State) {
	for _, name := range names {
		states = append(states, task.State(name))
	}
	return states
}

// open are the states of a task that may still change.
func open() []task.State {
	states := task.States()
	return states[:len(states)-1] // Done is the last
}

// colourOf says at a glance what went well, what did not, and what a person
// may have to do something about.
func colourOf(t client.Task) term.Paint {
	switch t.State {
	case task.Running:
		return term.Blue
	case task.Held, task.Review:
		return term.Yellow
	case task.Done:
		if t.Status == envelope.OK {
			return term.Green
		}
		return term.Red
	}
	return ""
}
