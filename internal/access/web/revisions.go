package web

import (
	"context"
	"errors"
	"strings"

	"mailboxd/internal/access/client"
)

// A revision is an earlier content of a task, with what the next one changed.
type revision struct {
	client.Task
	Diff []diffLine // nil: the content was the same, or is not kept
}

// A diffLine is a line of a comparison: Sign is +, - or a space.
type diffLine struct {
	Sign, Text string
}

// mostRevisions limits how many revisions of a task are compared.
const mostRevisions = 20

// revisionsOf compares each revision of a task with the one after it, the newest first.
func revisionsOf(ctx context.Context, daemon *client.Client, found client.TaskDetails) (all []revision, err error) {
	next := pretty(found.Request)
	for i := range min(len(found.Earlier), mostRevisions) {
		row := found.Earlier[len(found.Earlier)-1-i]
		raw, err := daemon.Request(ctx, row.ID, row.Revision)
		if said, ok := errors.AsType[*client.Error](err); ok && (said.Kind == client.NoTask || said.Kind == client.NoRoute) {
			all = append(all, revision{Task: row})
			continue
		}
		if err != nil {
			return nil, err
		}
		text := pretty(raw)
		all = append(all, revision{row, diffOf(text, next)})
		next = text
	}
	return all, nil
}

// mostCompared limits the lines of a comparison.
const mostCompared = 400

// diffOf compares two texts by lines; nil without a difference. Equal lines far from a change
// are left out.
func diffOf(was, is string) []diffLine {
	if was == is || was == "" || is == "" {
		return nil
	}
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	a, b = a[:min(len(a), mostCompared)], b[:min(len(b), mostCompared)]
	common := make([][]int, len(a)+1) // the longest common subsequence of the rests
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var all []diffLine
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			all = append(all, diffLine{" ", a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[i+1][j] >= common[i][j+1]):
			all = append(all, diffLine{"-", a[i]})
			i++
		default:
			all = append(all, diffLine{"+", b[j]})
			j++
		}
	}
	return nearChanges(all)
}

// nearChanges keeps the lines within three lines of a change.
func nearChanges(all []diffLine) (kept []diffLine) {
	const around = 3
	for i, line := range all {
		near := false
		for k := max(0, i-around); k <= min(len(all)-1, i+around); k++ {
			near = near || all[k].Sign != " "
		}
		switch {
		case near:
			kept = append(kept, line)
		case len(kept) > 0 && kept[len(kept)-1].Sign != "…":
			kept = append(kept, diffLine{"…", ""})
		}
	}
	return kept
}
