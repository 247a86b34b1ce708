package core_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

func TestAVoidApprovalSaysWhatHasChanged(t *testing.T) {
	now := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	const other = `{"format":2,"files":{"/bin/tool":"new"}}`
	for _, test := range []struct {
		name, was, is, want string
	}{
		{"another program", `{"format":2,"files":{"/bin/tool":"old"}}`, other, `what would be run has changed: files./bin/tool: "old" -> "new"`},
		{"an earlier version", `{"executable":"/bin/tool"}`, other, "an earlier version of mailboxd asked, and did not cover the content of the program"},
		{"the same plan", other, other, "what would be run has changed since it was asked about"},
		{"no plan", ``, ``, "what would be run has changed since it was asked about"},
	} {
		held := task.Task{Seq: 1, ID: "t", Revision: 1, Latest: true, State: task.Held, Reasons: []task.Reason{task.Approval}, Until: now}
		verdict := task.Verdict{Admit: true, Hold: []task.Reason{task.Approval}, Digest: "d2", Plan: jsontext.Value(test.is)}
		for _, decision := range []task.Decision{task.Approved, task.Undecided} {
			asked := &task.Consent{Task: 1, Decision: decision, Digest: "d1", Plan: jsontext.Value(test.was)}
			events, err := core.Decide(core.NewState(core.Task{Task: held, Start: asked}),
				&core.Judge{Task: 1, Seen: core.See(held), Verdict: verdict}, core.Config{ApprovalTTL: time.Hour}, now)
			if err != nil {
				t.Fatal(err)
			}
			ended, isEnd := events[0].Change.(*core.Concluded)
			if !isEnd || ended.Consent.Decision != task.Void || ended.Consent.Note != test.want {
				t.Errorf("%s, %q: the first event is %+v; want it void, as %q", test.name, decision, events[0], test.want)
			}
		}
		asked := &task.Consent{Task: 1, Digest: "d1", Plan: jsontext.Value(test.was)}
		_, err := core.Decide(core.NewState(core.Task{Task: held, Start: asked}), &core.Answer{
			Task: 1, Seen: core.See(held), Person: core.Person{Names: []string{"bob"}}, Decision: task.Approved, Digest: "d1", Verdict: verdict,
		}, core.Config{}, now)
		if !errors.Is(err, core.ErrChanged) || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: the decision is refused as %v; want %q", test.name, err, test.want)
		}
	}
}
