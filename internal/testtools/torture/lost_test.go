package torture_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/ledger"
)

// A span is a time in which keepers were killed.
type span struct{ from, to time.Time }

// checkLost holds each run_lost to what alone explains it: that the run's
// keeper was killed, or the machine, between its intent and its end, and that
// nothing says how it ended.
func (s *site) checkLost(t *testing.T, b *book, killed []span) {
	t.Helper()
	books, err := ledger.OpenReader(s.path("state/ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer books.Close()
	for id, p := range b.promises {
		if p.key != "" && p.key != p.id {
			continue // it has no run
		}
		rows, err := books.Revisions(t.Context(), envelope.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if row.Kind != envelope.RunLost {
				continue
			}
			runs, err := books.Runs(t.Context(), row.Seq)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.judgeLost(row, runs, killed); err != nil {
				t.Errorf("task %s, revision %d: %v", id, row.Revision, err)
			}
		}
	}
}

func (s *site) judgeLost(row task.Task, runs []task.Run, killed []span) error {
	at := slices.IndexFunc(runs, func(r task.Run) bool { return r.Attempt == row.Attempt })
	if at < 0 && s.damage != nil {
		return nil // the result of a run of which the ledger was lost
	}
	if at < 0 {
		return fmt.Errorf("run_lost, and the ledger has no run %d", row.Attempt)
	}
	intent, end := runs[at].Intent, row.Finished
	dir := fmt.Sprintf("state/runs/%s/%d.%d", row.ID.Dir(), row.Revision, row.Attempt)
	rebooted := s.boot != "" && !strings.HasPrefix(runs[at].Boot, s.boot)
	exit, ok, _ := runner.ReadExit(s.path(dir))
	whole, err := runner.Whole(exit, s.path(dir), s.path(dir+"/result.json"))
	if ok && err == nil && (!rebooted || whole) { // a machine that went down may have lost part of the answer
		return fmt.Errorf("run_lost, and its directory says how it ended: %+v", exit)
	}
	if !rebooted && !slices.ContainsFunc(killed, func(k span) bool { return intent.Before(k.to) && end.After(k.from) }) {
		return fmt.Errorf("run_lost, and no keeper was killed from %v to %v", intent, end)
	}
	return nil
}

// deaths reads from the log when keepers died at their fault points.
func (s *site) deaths() (killed []span, err error) {
	points, err := faultPoints()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(s.path("faults"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var what, name string
		var pid int
		var nanoseconds int64
		if n, _ := fmt.Sscan(line, &what, &name, &pid, &nanoseconds); n < 4 || what != "died" {
			continue
		}
		if slices.ContainsFunc(points, func(p point) bool { return p.keeper && p.name == name }) {
			at := time.Unix(0, nanoseconds)
			killed = append(killed, span{at, at})
		}
	}
	return killed, nil
}
