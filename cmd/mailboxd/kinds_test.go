package main

import (
	"context"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/testscript"

	"mailboxd/internal/cli/reader"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// notInScripts has what no script can produce, each with the test that produces it.
var notInScripts = []string{
	// The answer has to stay unreadable for 15 minutes:
	// TestATaskWhoseAnswerStaysUnreadIsHeldUntilItsReleaseReadsIt in package dispatch.
	"hold reason " + string(task.AnswerUnread),
	// They need a runner that is cut off, answers late, or takes less than a task needs: package dispatch and internal/running/owner.
	"hold reason " + string(task.Unreachable), "hold reason " + string(task.NoRunner),
	"event kind " + string(task.KindRunUnreachable), "event kind " + string(task.KindRunReachable),
	"event kind " + string(task.KindRunVoided), "event kind " + string(task.KindRunFenced),
	// The attempts at a callback take ten minutes:
	// TestAReleaseHasAnAbandonedCallbackMadeOnce in package dispatch.
	"event kind " + string(task.KindCallbackAbandoned),
}

// coverage collects what occurs in the ledgers of all scripts.
type coverage struct {
	mu       sync.Mutex // guards the other fields: scripts run in parallel
	scripts  int        // that have ended
	occurred map[string]bool
}

// collect adds what occurred in the ledgers of a script that has ended.
func (c *coverage) collect(env *testscript.Env) {
	occurred := map[string]bool{}
	_ = filepath.WalkDir(env.WorkDir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && entry.Name() == "ledger.db" {
			readKinds(path, occurred)
		}
		return nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts++
	maps.Copy(c.occurred, occurred)
}

// readKinds adds the event kinds and hold reasons of a ledger to those that
// occurred. It adds nothing of a ledger that a script has broken.
func readKinds(path string, occurred map[string]bool) {
	records, err := ledger.OpenReader(path)
	if err != nil {
		return
	}
	defer records.Close()
	for last, more := int64(0), true; more; {
		events, _ := records.Events(context.Background(), "", last, reader.EventPage)
		for _, e := range events {
			last = e.Seq
			occurred["event kind "+string(e.Kind)] = true
			for _, reason := range reasonsOf(e) {
				occurred["hold reason "+reason] = true
			}
		}
		more = len(events) == reader.EventPage
	}
}

// reasonsOf returns why an event says that its task is held.
func reasonsOf(e task.Event) []string {
	var data struct {
		Held    []string `json:"held"`    // of task.accepted
		Reasons []string `json:"reasons"` // of task.held
	}
	if e.Kind != "task.accepted" && e.Kind != "task.held" || json.Unmarshal(e.Data, &data) != nil {
		return nil
	}
	return slices.Concat(data.Held, data.Reasons)
}

// check fails for each event kind and each hold reason that occurred in no
// script. It checks nothing when only some of the scripts ran.
func (c *coverage) check(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if c.scripts < len(scripts) || t.Failed() {
		return
	}
	var all []string
	for _, kind := range task.EventKinds() {
		all = append(all, "event kind "+string(kind))
	}
	for _, reason := range task.Reasons() {
		all = append(all, "hold reason "+string(reason))
	}
	for _, name := range all {
		switch excused := slices.Contains(notInScripts, name); {
		case !c.occurred[name] && !excused:
			t.Errorf("the %s occurs in no script", name)
		case c.occurred[name] && excused:
			t.Errorf("the %s occurs in a script; remove it from notInScripts", name)
		}
	}
	for name := range c.occurred {
		if !slices.Contains(all, name) {
			t.Errorf("the %s occurs in a script and is missing from the list of all", name)
		}
	}
}
