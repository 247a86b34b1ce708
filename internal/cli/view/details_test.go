package view_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// withCallback returns a failed task whose callback failed for a reason.
func withCallback(reason string) *view.Details {
	return &view.Details{TaskDetails: client.TaskDetails{
		Task:   client.Task{ID: "t", Revision: 1, State: task.Done, Status: "error", Attempt: 1, CallbackFailed: true},
		Result: []byte(`{"schema_version":"1.0","task_id":"t","agent_id":"a","status":"error","output":{"summary":"","actions":[]},"error":{"kind":"internal","message":"its own reason"}}`),
		Events: []client.Event{{Kind: task.KindCallbackFailed, Revision: 1, Data: []byte(`{"reason":"` + reason + `"}`)}},
	}}
}

func TestAFailedCallbackHidesNotWhyATaskFailed(t *testing.T) {
	for reason, next := range map[string]string{
		"append: q.jsonl is not a regular file": "remove what is in the way of its callback, then mailboxd release t",
		"append: openat q: file name too long":  "send the task again with a shorter name in its callback",
	} {
		var out bytes.Buffer
		if err := withCallback(reason).Print(term.ScreenOf(&out), view.WaitContext{}, nil); err != nil {
			t.Fatal(err)
		}
		want := "  waits for  its callback, which failed\n  because    its own reason\n  next       mailboxd logs t, or mailboxd retry t\n" +
			"  callback   " + reason + "\n  next       " + next + "\n"
		if !strings.Contains(out.String(), want) {
			t.Errorf("printed:\n%s\nwant:\n%s", out.String(), want)
		}
	}
}

func TestACallbackHasFailedAgainOnlyAfterTheLastRelease(t *testing.T) {
	f := withCallback("no room")
	if why := f.FailedAgain(); why != "no room" {
		t.Errorf("FailedAgain = %q; want the reason of the failure", why)
	}
	f.Events = append(f.Events, client.Event{Kind: task.KindTaskReleased, Revision: 1})
	if why := f.FailedAgain(); why != "" {
		t.Errorf("FailedAgain after a release = %q; want none", why)
	}
}

func TestHostsThatTheProgramDoesNotNeedShareALine(t *testing.T) {
	f := withCallback("no room")
	f.Runs = []client.Run{{Attempt: 1, RefusedHosts: []client.RefusedHost{
		{Host: "stats.example:443", Why: "it is not in the list", For: "usage statistics"}, {Host: "other.net:443", Why: "it is not in the list"},
		{Host: "up.example:443", Why: "it is not in the list", For: "updates"},
	}}}
	var out bytes.Buffer
	if err := f.Print(term.ScreenOf(&out), view.WaitContext{}, nil); err != nil {
		t.Fatal(err)
	}
	want := "    network: refused other.net:443: it is not in the list\n" +
		"    network: refused 2 that the program asks for by itself, and does without: stats.example:443 (usage statistics), up.example:443 (updates)\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("printed:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestALostRunIsNotSaidToHaveNotBegun(t *testing.T) {
	f := &view.Details{TaskDetails: client.TaskDetails{Task: client.Task{State: task.Done, Attempt: 2, Kind: envelope.RunLost}}}
	for attempt, want := range map[int]string{1: "1  did not begin", 2: "2  lost; it may have begun"} {
		if words := f.Outcome(client.Run{Attempt: attempt}, time.Now()); words != want {
			t.Errorf("run %d: %q; want %q", attempt, words, want)
		}
	}
}
