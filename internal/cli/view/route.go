package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/route"
)

// PrintRoute prints a decision about the agent of a task.
func PrintRoute(w io.Writer, r route.Record, asJSON bool) error {
	if asJSON {
		return term.PrintJSON(w, r)
	}
	s := term.ScreenOf(w)
	head := r.Selected
	switch {
	case head != "":
	case r.Capable:
		head = "no agent is free"
	default:
		head = "no agent can do it"
	}
	lines := [][2]string{{"because", r.Reason}}
	for _, id := range slices.SortedFunc(maps.Keys(r.Scores), func(a, b string) int { return compareScores(r.Scores, a, b) }) {
		c := r.Inputs[id]
		lines = append(lines, [2]string{"score", fmt.Sprintf("%s %s (%s)", term.OneLine(id), strconv.FormatFloat(r.Scores[id], 'f', -1, 64), inputsOf(c))})
	}
	for _, e := range r.Excluded {
		lines = append(lines, [2]string{"excluded", fmt.Sprintf("%s by %s: %s", term.OneLine(e.Agent), e.Filter, term.OneLine(e.Why))})
	}
	if _, err := fmt.Fprintln(s, s.Paint(term.Bold, term.OneLine(head))); err != nil {
		return err
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(s, "  %-9s %s\n", l[0], term.OneLine(l[1])); err != nil {
			return err
		}
	}
	return nil
}

// compareScores orders agents by their scores, the highest first.
func compareScores(scores map[string]float64, a, b string) int {
	switch {
	case scores[a] > scores[b]:
		return -1
	case scores[a] < scores[b]:
		return 1
	}
	return strings.Compare(a, b)
}

// inputsOf says what the score of a candidate was made of.
func inputsOf(c route.Candidate) string {
	load := fmt.Sprintf("%d running", c.Running)
	if c.Slots > 0 {
		load = fmt.Sprintf("%d of %d slots taken", c.Running, c.Slots)
	}
	if c.Settled == 0 {
		return load + ", no runs yet"
	}
	return fmt.Sprintf("%s, %d of its last %d runs without a fault", load, c.Good, c.Settled)
}
