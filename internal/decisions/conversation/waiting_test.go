package conversation_test

import (
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// Each predicate decides whether a task goes on, ends or gets a message.
func TestWhatATaskWaitsFor(t *testing.T) {
	held := func(r ...task.Reason) task.Task { return task.Task{State: task.Held, Reasons: r} }
	for name, c := range map[string]struct {
		t                                task.Task
		suspended, follows, awaits, work bool
	}{
		"a message":            {held(task.Paused, task.Reply), true, false, true, true},
		"other tasks":          {held(task.Children), true, false, false, true},
		"the same command":     {held(task.SameCommand), false, true, false, false},
		"an approval":          {held(task.Approval), false, false, false, false},
		"nothing: it runs":     {task.Task{State: task.Running, Reasons: []task.Reason{task.Reply, task.SameCommand}}, false, false, false, true},
		"nothing: in an inbox": {task.Task{State: task.Waiting}, false, false, false, true},
		"nothing: it is done":  {task.Task{State: task.Done, Reasons: []task.Reason{task.Reply, task.SameCommand}}, false, false, false, false},
	} {
		for what, got := range map[string][2]bool{
			"Suspended":   {conversation.Suspended(c.t), c.suspended},
			"Follows":     {conversation.Follows(c.t), c.follows},
			"AwaitsReply": {conversation.AwaitsReply(c.t), c.awaits},
			"InWork":      {conversation.InWork(c.t), c.work},
		} {
			if got[0] != got[1] {
				t.Errorf("%s: %s = %t; want %t", name, what, got[0], got[1])
			}
		}
	}
}

func child(seq int64, tie envelope.Tie, state task.State) task.Child {
	return task.Child{Task: task.Task{Seq: seq, State: state}, Tie: tie}
}

func TestAParentWaitsForTheTasksThatItNeeds(t *testing.T) {
	for tie, want := range map[envelope.Tie]bool{
		envelope.Assist: true, envelope.Transfer: true, envelope.Member: true, envelope.Fork: false, envelope.Oversee: false, "": false,
	} {
		child := child(0, tie, task.Running)
		done := child
		done.State = task.Done
		if conversation.Needed(child) != want || conversation.Pending(child) != want || conversation.Pending(done) {
			t.Errorf("%q: Needed %t, Pending %t, and %t when it is done; want %t, %t, false",
				tie, conversation.Needed(child), conversation.Pending(child), conversation.Pending(done), want, want)
		}
	}
}

func TestTheLatestTaskWithATieIsFound(t *testing.T) {
	children := []task.Child{child(1, envelope.Assist, task.Running), child(2, envelope.Assist, task.Running), child(3, envelope.Fork, task.Running)}
	if c, ok := conversation.Tied(children, envelope.Assist); !ok || c.Seq != 2 {
		t.Errorf("Tied = %+v, %t; want the second", c, ok)
	}
	if c, ok := conversation.Tied(children, envelope.Oversee); ok {
		t.Errorf("Tied = %+v; want none", c)
	}
	review := append(children, child(4, envelope.Oversee, task.Done), child(5, envelope.Oversee, task.Running))
	if c, ok := conversation.Reviewing(review); !ok || c.Seq != 5 {
		t.Errorf("Reviewing = %+v, %t; want the review that isn't done", c, ok)
	}
	if c, ok := conversation.Reviewing(review[:4]); ok {
		t.Errorf("Reviewing = %+v; want none, for the review is done", c)
	}
}

func TestWhichMessageIsAQuestion(t *testing.T) {
	waits := task.Task{Agent: "worker", State: task.Held, Reasons: []task.Reason{task.Reply}}
	for name, c := range map[string]struct {
		m     envelope.Message
		about task.Task
		want  bool
	}{
		"it wants a reply":              {envelope.Message{Act: envelope.Informs, WantsReply: true}, task.Task{}, true},
		"it asks":                       {envelope.Message{Act: envelope.Asks}, task.Task{}, true},
		"an overseer inquires":          {envelope.Message{Act: envelope.Inquires}, task.Task{}, true},
		"its sender waits for a reply":  {envelope.Message{Act: envelope.Informs, From: "worker"}, waits, true},
		"somebody else waits":           {envelope.Message{Act: envelope.Informs, From: "boss"}, waits, false},
		"its sender waits for no reply": {envelope.Message{Act: envelope.Informs, From: "worker"}, task.Task{Agent: "worker"}, false},
	} {
		if got := conversation.IsQuestion(c.m, c.about); got != c.want {
			t.Errorf("%s: IsQuestion = %t; want %t", name, got, c.want)
		}
	}
}

func TestWhichTasksHaveMessages(t *testing.T) {
	for name, c := range map[string]struct {
		t             task.Task
		notify, quiet bool
	}{
		"a first run in AINL":          {task.Task{State: task.Running, Attempt: 1, Dialect: envelope.AINL}, false, true},
		"a second run in AINL":         {task.Task{State: task.Running, Attempt: 2, Dialect: envelope.AINL}, false, false},
		"a task of another one":        {task.Task{State: task.Running, Attempt: 1, Dialect: envelope.AINL, Parent: 7}, true, false},
		"a first run in CLowl":         {task.Task{State: task.Running, Attempt: 1, Dialect: envelope.CLowl}, true, false},
		"a task in AINL that waits":    {task.Task{State: task.Held, Dialect: envelope.AINL}, false, false},
		"a task of a reader before us": {task.Task{State: task.Running}, false, false},
	} {
		if conversation.MayNotify(c.t) != c.notify || conversation.Silent(c.t) != c.quiet {
			t.Errorf("%s: MayNotify %t, Silent %t; want %t, %t", name, conversation.MayNotify(c.t), conversation.Silent(c.t), c.notify, c.quiet)
		}
	}
}

func TestOnlyAnOpenRequestInCLowlHearsItsEndAsAReply(t *testing.T) {
	for _, c := range []struct {
		dialect envelope.Dialect
		open    bool
		tie     envelope.Tie
		want    bool
	}{
		{envelope.CLowl, true, "", true}, {envelope.CLowl, false, "", false}, {envelope.CLowl, true, envelope.Member, false}, {envelope.CAP, true, "", false},
	} {
		got := conversation.NotifiedOfEnd(task.Task{Dialect: c.dialect}, task.Conversation{Open: c.open, Tie: c.tie})
		if got != c.want {
			t.Errorf("NotifiedOfEnd(%s, open %t, %q) = %t; want %t", c.dialect, c.open, c.tie, got, c.want)
		}
	}
}

// CLOWL-30: a delegation that replies to a message is of that task alone.
func TestADelegationThatNamesItsTaskIsOfThatTaskAlone(t *testing.T) {
	for name, c := range map[string]struct {
		m    envelope.Message
		want bool
	}{
		"it replies to a message": {envelope.Message{Act: envelope.Delegates, Dialect: envelope.CLowl, Cause: "m1"}, true},
		"it replies to none":      {envelope.Message{Act: envelope.Delegates, Dialect: envelope.CLowl}, false},
		"in CAP":                  {envelope.Message{Act: envelope.Delegates, Dialect: envelope.CAP, Cause: "m1"}, false},
		"a request":               {envelope.Message{Act: envelope.Requests, Dialect: envelope.CLowl, Cause: "m1"}, false},
	} {
		if got := conversation.MustHave(c.m); got != c.want {
			t.Errorf("%s: MustHave = %t; want %t", name, got, c.want)
		}
	}
	for dialect, want := range map[envelope.Dialect]bool{envelope.CLowl: true, envelope.CAP: false, envelope.Clutch: false, envelope.AINL: false} {
		if got := conversation.ByThread(envelope.Message{Dialect: dialect}); got != want {
			t.Errorf("ByThread(%s) = %t; want %t", dialect, got, want)
		}
	}
}

// CLUTCH-52, CLUTCH-53: only the same command of the same request may share one run.
func TestTwoRequestsInClutchAreTheSameOnlyInAllOfTheirCommand(t *testing.T) {
	request := func(part envelope.ClutchPart, payload string) envelope.Task {
		raw := `{"clutch":"0.1","type":"task.request","task_id":"t1","payload":` + payload + `}`
		return envelope.Task{Clutch: &part, Raw: []byte(raw)}
	}
	first := request(envelope.ClutchPart{Parent: "p", IdempotencyKey: "k"}, `{"n":1}`)
	for name, c := range map[string]struct {
		second envelope.Task
		want   bool
	}{
		"the same":                {request(envelope.ClutchPart{Parent: "p", IdempotencyKey: "k", Attempt: 2}, `{"n":1}`), true},
		"another payload":         {request(envelope.ClutchPart{Parent: "p", IdempotencyKey: "k"}, `{"n":2}`), false},
		"another parent":          {request(envelope.ClutchPart{Parent: "q", IdempotencyKey: "k"}, `{"n":1}`), false},
		"another key":             {request(envelope.ClutchPart{Parent: "p", IdempotencyKey: "l"}, `{"n":1}`), false},
		"a request not in Clutch": {envelope.Task{Raw: first.Raw}, false},
	} {
		if conversation.SameClutch(first, c.second) != c.want || conversation.SameClutch(c.second, first) != c.want {
			t.Errorf("%s: SameClutch = %t; want %t", name, !c.want, c.want)
		}
	}
}

func TestATaskThatFollowsAnotherOneHasItsResultAndNoCost(t *testing.T) {
	row, leader := task.Task{ID: "t2"}, task.Task{ID: "t1"}

	r := conversation.Same(row, leader, envelope.Result{TaskID: "t1", Status: envelope.OK, Output: envelope.Output{Summary: "done"}, Cost: &envelope.Cost{Tokens: 7}})
	if r.TaskID != "t2" || r.Output.Summary != "done" || r.Cost == nil || *r.Cost != (envelope.Cost{}) {
		t.Errorf("Same = %+v; want the result for t2 without a cost", r)
	}
	if r := conversation.Same(row, leader, envelope.Result{TaskID: "t1"}); r.Output.Summary == "" || r.Output.Summary == "done" {
		t.Errorf("Same = %q of a result that is no longer kept; want that said", r.Output.Summary)
	}
}
