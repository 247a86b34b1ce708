package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
)

// PrintRunners prints runners as a table, or each as a line of JSON.
func PrintRunners(w io.Writer, all []client.Runner, asJSON bool) error {
	if asJSON {
		for _, r := range all {
			if err := term.PrintJSON(w, r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no runner has connected, and none is configured; docs/runners.md says how to add one")
		return err
	}
	return runnerTable(all, time.Now()).Print(term.ScreenOf(w))
}

func runnerTable(all []client.Runner, now time.Time) *term.Table {
	list := &term.Table{Head: []string{"RUNNER", "STATUS", "RUNS", "SEEN", "AGENTS", "OFFERS", "REASON"}, Weights: []int{1, 0, 0, 0, 1, 1, 4}}
	for _, r := range all {
		list.Add(term.Cell{Text: term.OneLine(r.Name)}, term.Cell{Text: string(r.Status), Paint: paintOf(r.Status)},
			term.Cell{Text: fmt.Sprintf("%d of %d", r.Running, r.Slots)}, term.Cell{Text: RunnerSeen(r, now)},
			term.Cell{Text: term.OneLine(RunnerAgents(r))}, term.Cell{Text: term.OneLine(strings.Join(r.Capabilities, " "))},
			term.Cell{Text: term.OneLine(whyRunner(r))})
	}
	return list
}

// RunnerSeen says how long ago the last message of a runner came.
func RunnerSeen(r client.Runner, now time.Time) string {
	if r.Seen.IsZero() {
		return "never"
	}
	return term.Age(now.Sub(r.Seen)) + " ago"
}

// RunnerAgents lists the agents of a runner.
func RunnerAgents(r client.Runner) string {
	ids := make([]string, len(r.Agents))
	for i, a := range r.Agents {
		ids[i] = a.ID
	}
	return strings.Join(ids, " ")
}

// whyRunner says why a runner gets no tasks, and what to do; "" if it gets some.
func whyRunner(r client.Runner) string {
	if r.Reason != "" && r.Next != "" {
		return r.Reason + "; " + r.Next
	}
	return r.Reason + r.Next
}

func paintOf(s client.RunnerStatus) term.Paint {
	switch s {
	case client.RunnerReady, client.RunnerBusy:
		return term.Green
	case client.RunnerUnavailable:
		return term.Red
	}
	return term.Yellow
}
