package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

func TestAPriorityIsAtMostTheLimitAndATaskOfARunHasThatOfTheTaskAbove(t *testing.T) {
	above := &task.Task{Seq: 7, ID: "above", Priority: 2}
	for _, c := range []struct {
		about       string
		asked       any // nil: none
		parent      *task.Task
		limit, want int
		warns       bool
	}{
		{about: "none", limit: 5, want: 0},
		{about: "within the limit", asked: 4, limit: 5, want: 4},
		{about: "above the limit", asked: 9, limit: 5, want: 5, warns: true},
		{about: "below zero, which nobody has to allow", asked: -9, limit: 0, want: -9},
		{about: "that of a task above with a low one", parent: &task.Task{Seq: 8, ID: "low", Priority: -4}, limit: 5, want: -4},
		{about: "that of the task above", parent: above, limit: 5, want: 2},
		{about: "that of the task above, where the limit was lowered", parent: above, limit: 1, want: 1},
		{about: "a lower one than the task above", asked: -3, parent: above, limit: 5, want: -3},
		{about: "a run asks for more than the limit", asked: 9, parent: above, limit: 5, want: 5, warns: true},
	} {
		request := envelope.Task{ID: "t", Agent: "a", Requester: "r", Type: "work", Metadata: map[string]jsontext.Value{}}
		if c.asked != nil {
			request.Metadata[envelope.PriorityKey], _ = json.Marshal(c.asked)
		}
		accept := &core.Accept{Request: request, Verdict: task.Verdict{Admit: true}, Parent: c.parent}
		events, err := core.Decide(core.NewState(), accept, core.Config{MaxPriority: c.limit}, time.Now())
		if err != nil || len(events) == 0 {
			t.Fatalf("%s: Decide() = %v, %v", c.about, events, err)
		}
		added, data := events[0].Change.(*core.Added).Task, events[0].Data.(core.Accepted)
		if added.Priority != c.want || data.Priority != c.want {
			t.Errorf("%s: the task has the priority %d, and its event says %d; want %d", c.about, added.Priority, data.Priority, c.want)
		}
		if warns := slices.ContainsFunc(data.Warnings, func(w string) bool { return w != "" }); warns != c.warns {
			t.Errorf("%s: the warnings are %q; want some: %t", c.about, data.Warnings, c.warns)
		}
	}
}

func TestARetryHasAtMostThePriorityThatIsAllowedNow(t *testing.T) {
	last := task.Task{Seq: 1, ID: "t", Revision: 1, Latest: true, State: task.Done, Status: envelope.Failed, Agent: "a", Priority: 9}
	retry := &core.Resubmit{Task: 1, Verdict: task.Verdict{Admit: true}}
	events, err := core.Decide(core.NewState(core.Task{Task: last}), retry, core.Config{MaxPriority: 2}, time.Now())
	if err != nil || len(events) == 0 {
		t.Fatalf("Decide() = %v, %v", events, err)
	}
	if got := events[0].Change.(*core.Added).Task.Priority; got != 2 {
		t.Errorf("the retry has the priority %d; want 2, the limit", got)
	}
}
