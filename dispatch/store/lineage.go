package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/schedule"
)

// JudgeLineage judges a task again by its ancestors. The task waited for an earlier revision to
// end, or will run again.
func (rd *Reader) JudgeLineage(ctx context.Context, row task.Task, v task.Verdict) (task.Verdict, error) {
	if row.Parent == 0 || !v.Admit {
		return v, nil
	}
	parent, err := rd.Ledger.Task(ctx, row.Parent)
	if err != nil {
		return v, err
	}
	children, err := rd.Ledger.ChildrenBefore(ctx, row.Parent, row.Seq)
	if err != nil {
		return v, err
	}
	lineage, err := rd.Lineage(func(seq int64) (task.Task, bool, error) {
		ancestor, err := rd.Ledger.Task(ctx, seq)
		return ancestor, err == nil, err
	}, parent, children)
	return lineage.Admit(v, row.Agent, rd.Agents.Mode(envelope.ControlLineage)), err
}

// Lineage gathers the ancestors of a task that the run of a parent requests.
func (rd *Reader) Lineage(find func(seq int64) (task.Task, bool, error), parent task.Task, children int) (core.Lineage, error) {
	lineage := core.Lineage{Ancestors: []task.Task{parent}, Children: children, MaxDepth: rd.Opts.Depth, MaxChildren: rd.Opts.Children}
	for seq := parent.Parent; seq != 0; {
		ancestor, found, err := find(seq)
		if err != nil || !found {
			return lineage, err
		}
		lineage.Ancestors, seq = append(lineage.Ancestors, ancestor), ancestor.Parent
	}
	return lineage, nil
}

// ParentOf returns the task that an agent works on, or worked on when the line was written: the
// wanted task, or else a task in the Clutch run, or else any; of those the task with the latest
// run, current tasks before ended ones. An agent that fetches its tasks works on a task from its
// claim.
func (rd *Reader) ParentOf(tx *Transaction, agent string, wanted envelope.ID, run string) (parent task.Task, found bool, err error) {
	var running, ended []task.Task
	classify := func(it schedule.Item, began bool) error {
		row, known, err := tx.Task(it.Seq)
		switch {
		case err != nil || !known:
			return err
		case row.State == task.Running && began: // a run with an intent alone has requested nothing yet
			running = append(running, row)
		case began:
			ended = append(ended, row)
		}
		return nil
	}
	for _, r := range rd.Runs.Find(func(it schedule.Item) bool { return it.Agent == agent }) {
		err = errors.Join(err, classify(r.Item, r.Began.Load()))
	}
	for _, it := range rd.RecentRuns.of(agent) { // after Runs: a run that ends meanwhile moves from Runs to RecentRuns
		err = errors.Join(err, classify(it, true))
	}
	if rd.Agents.Inbox(agent).File != "" {
		claimed, failed := tx.Claimed(agent, time.Now())
		running, err = append(running, claimed...), errors.Join(err, failed)
	}
	if err != nil {
		return task.Task{}, false, err
	}
	all := slices.Concat(running, ended)
	if at := slices.IndexFunc(all, func(row task.Task) bool { return row.ID == wanted }); at >= 0 {
		return all[at], true, nil
	}
	for _, rows := range [][]task.Task{running, ended} {
		in, err := tx.inRun(rows, run)
		if err != nil {
			return task.Task{}, false, err
		}
		if len(in) > 0 {
			return lastBegun(tx, in)
		}
	}
	if len(running) > 0 {
		all = running
	}
	return lastBegun(tx, all)
}

// inRun returns the tasks that belong to a run of Clutch.
func (tx *Transaction) inRun(rows []task.Task, run string) (in []task.Task, err error) {
	for _, row := range rows {
		if run == "" {
			break
		}
		of, err := tx.RunOf(row)
		if err != nil {
			return nil, err
		}
		if of == run {
			in = append(in, row)
		}
	}
	return in, nil
}

// lastBegun returns the task with the latest run, if there is any.
func lastBegun(tx *Transaction, rows []task.Task) (last task.Task, found bool, err error) {
	var latest task.Run
	for _, row := range rows {
		run, _, err := tx.LastRun(row.Seq)
		if err != nil {
			return task.Task{}, false, err
		}
		if !found || run.Intent.After(latest.Intent) {
			last, latest, found = row, run, true
		}
	}
	return last, found, nil
}
