package conversation_test

import (
	"slices"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

func TestHowADelegatedTaskIsTied(t *testing.T) {
	for _, c := range []struct {
		tie  envelope.Tie
		hold task.Reason
		want envelope.Tie
	}{
		{envelope.Transfer, task.Children, envelope.Transfer},
		{envelope.Fork, task.Reply, envelope.Fork},
		{"", task.Children, envelope.Assist},
		{envelope.Oversee, task.Children, envelope.Assist}, // CAP-24: the daemon alone asks overseers
		{envelope.Member, task.Reply, envelope.Assist},
		{envelope.Assist, "", envelope.Fork}, // CLOWL-32: it has answered
		{envelope.Transfer, task.Approval, envelope.Fork},
	} {
		if got := conversation.TieOf(envelope.Message{Tie: c.tie}, c.hold); got != c.want {
			t.Errorf("TieOf(%q, %q) = %q; want %q", c.tie, c.hold, got, c.want)
		}
	}
}

// CLOWL-09.
func TestADelegationToSeveralIsOneTaskForEachOrCombined(t *testing.T) {
	for name, c := range map[string]struct {
		to   []string
		tie  envelope.Tie
		want [][]string
	}{
		"one":              {[]string{"a"}, envelope.Transfer, [][]string{{"a"}}},
		"several":          {[]string{"a", "b"}, envelope.Assist, [][]string{{"a"}, {"b"}}},
		"several entirely": {[]string{"a", "b"}, envelope.Transfer, [][]string{{"a", "b"}}},
		"everybody":        {[]string{envelope.Everybody}, envelope.Assist, [][]string{{envelope.Everybody}}},
	} {
		var got [][]string
		for _, m := range conversation.Split(envelope.Message{To: c.to, Tie: c.tie, Raw: []byte("line")}) {
			if got = append(got, m.To); len(c.want) > 1 && m.Raw != nil {
				t.Errorf("%s: the line %s is for all; want none", name, m.Raw)
			}
		}
		if !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%s: Split() = %q; want %q", name, got, c.want)
		}
	}
}

// A key names one command: several agents with one key would be taken for one of them.
func TestEachTaskOfADelegationToSeveralHasAKeyOfItsOwn(t *testing.T) {
	for key, want := range map[string][]string{"k": {"k:a", "k:b"}, "": {"", ""}} {
		var got []string
		for _, m := range conversation.Split(envelope.Message{To: []string{"a", "b"}, Clutch: &envelope.ClutchPart{IdempotencyKey: key}}) {
			got = append(got, m.Clutch.IdempotencyKey)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the keys of a delegation with the key %q are %q; want %q", key, got, want)
		}
	}
}

// CLOWL-31, CLOWL-32, CLOWL-33, CAP-24.
func TestWhatEndsWithTheTaskAbove(t *testing.T) {
	for _, c := range []struct {
		tie    envelope.Tie
		status envelope.Status // of the task above
		want   bool
	}{
		{envelope.Member, envelope.OK, true},
		{envelope.Oversee, envelope.OK, true},
		{envelope.Assist, envelope.Stopped, true},
		{envelope.Assist, envelope.OK, false}, // it has answered without it
		{envelope.Transfer, envelope.Partial, false},
		{envelope.Fork, envelope.Stopped, false},
		{"", envelope.Failed, false},
	} {
		if got := conversation.EndsWith(task.Child{Tie: c.tie}, task.Task{Status: c.status}); got != c.want {
			t.Errorf("EndsWith(%q, %s) = %t; want %t", c.tie, c.status, got, c.want)
		}
	}
}

func TestTheConversationOfARetriedTask(t *testing.T) {
	was := task.Conversation{Task: 1, Message: "m1", Tie: envelope.Transfer, Notified: 7, Rounds: 2}
	for over, want := range map[bool]task.Conversation{
		false: {Task: 2, Message: "m1", Tie: envelope.Transfer},
		true:  {Task: 2, Message: "m1", Tie: envelope.Fork, Open: true},
	} {
		if got := conversation.Retried(was, 2, over); got != want {
			t.Errorf("Retried(over: %t) = %+v; want %+v", over, got, want)
		}
	}
	if got := conversation.Retried(task.Conversation{Task: 1}, 2, true); got.Tie != "" || !got.Open {
		t.Errorf("Retried() = %+v; want a task without a parent to stay so", got)
	}
}

func TestWhichMessageWakesATask(t *testing.T) {
	held := func(r ...task.Reason) task.Task {
		return task.Task{Agent: "worker", State: task.Held, Reasons: r}
	}
	from := func(from, to string) envelope.Message { return envelope.Message{From: from, To: []string{to}} }
	for name, c := range map[string]struct {
		m        envelope.Message
		question bool
		t        task.Task
		want     bool
	}{
		"a reply":                        {from("user", "worker"), false, held(task.Reply), true},
		"a message to somebody else":     {from("user", "other"), false, held(task.Reply), false},
		"its own":                        {from("worker", "worker"), true, held(task.Reply), false},
		"news while others work":         {from("user", "worker"), false, held(task.Children), false},
		"a question while others work":   {from("user", "worker"), true, held(task.Children), true},
		"a reply while it is paused too": {from("user", "worker"), false, held(task.Paused, task.Reply), true},
		"a task held for approval":       {from("user", "worker"), true, held(task.Approval), false},
		"a running task":                 {from("user", "worker"), true, task.Task{Agent: "worker", State: task.Running}, false},
	} {
		if got := conversation.Wakes(c.m, c.question, c.t); got != c.want {
			t.Errorf("%s: Wakes() = %t; want %t", name, got, c.want)
		}
	}
}
