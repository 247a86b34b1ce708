package dispatch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

func TestReferencesAreJudgedAsStrictlyAsAsked(t *testing.T) {
	for _, c := range []struct {
		name             string
		rule             store.RefRule
		outside, missing envelope.Kind
		silent           bool
	}{
		{"AINL-40 refs enforce", store.RefRule{}, envelope.SecurityViolation, "", false},
		{"AINL-40 refs enforce, required", store.RefRule{Required: true}, envelope.SecurityViolation, envelope.ContextUnavailable, false},
		{"AINL-40 refs warn", store.RefRule{Mode: envelope.Warn, Required: true}, "", "", false},
		{"AINL-40 refs off", store.RefRule{Mode: envelope.Off, Required: true}, "", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine(t)
			e.refs = c.rule
			e.start()
			for id, uri := range map[string]string{"outside": "file:///etc/shadow", "missing": "file://none"} {
				line := fmt.Sprintf(`{"schema_version":"1.0","task_id":%q,"requester_id":"tester","target_agent":"quick","target_role":"executor",`+
					`"task_type":"work","description":"a task","input":{"refs":[{"kind":"file","uri":%q}],"payload":0}}`, id, uri)
				_, _, err := mailbox.Append(e.parts.Box.Path(), []byte(line))
				e.must(err)
				e.Look(t.Context())
			}
			for id, want := range map[string]envelope.Kind{"outside": c.outside, "missing": c.missing} {
				if row := e.await(id, task.Done); row.Kind != want {
					t.Errorf("%s ended as %q; want %q", id, row.Kind, want)
				}
				if _, history := e.history(id); strings.Contains(history, "input.refs[0].uri") == c.silent {
					t.Errorf("%s: events = %s; want the field in it: %v", id, history, !c.silent)
				}
			}
		})
	}
}

func TestADeadlineThatDoesNotBindIsNotWaitedFor(t *testing.T) {
	e := newEngine(t)
	e.judge = func(envelope.Task, time.Time) task.Verdict { return task.Verdict{Admit: true} }
	e.start()
	e.must(e.Pause(t.Context(), "quick", me))
	e.send("late", "quick", `"deadline":"2020-01-01T00:00:00Z"`)
	e.wantHeld("late", task.Paused)
	if row := e.row("late"); !row.Until.IsZero() {
		t.Errorf("late is held until %v; want that nobody looks again for a deadline that does not bind", row.Until)
	}
	e.must(e.Resume(t.Context(), "quick", me))
	if row := e.await("late", task.Done); row.Status != envelope.OK {
		t.Errorf("late ended as %s (%s); want ok", row.Status, row.Kind)
	}
}
