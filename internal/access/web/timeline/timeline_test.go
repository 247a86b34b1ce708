package timeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/web/timeline"
	"mailboxd/internal/decisions/task"
)

func TestTheTimelineOfATaskSaysHowLongEachPhaseTook(t *testing.T) {
	began := time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)
	event := func(after time.Duration, kind task.Kind, data string) client.Event {
		return client.Event{Time: began.Add(after), Revision: 2, Kind: kind, Data: []byte(data)}
	}
	found := client.TaskDetails{Task: client.Task{Revision: 2}, Events: []client.Event{
		{Time: began.Add(-time.Hour), Revision: 1, Kind: task.KindTaskAccepted},
		event(0, task.KindTaskAccepted, `{}`),
		event(500*time.Millisecond, task.KindTaskHeld, `{"reasons": ["approval_required"]}`),
		event(510*time.Millisecond, task.KindApprovalAsked, `{"stage": "pre"}`),
		event(90*time.Second, task.KindApprovalApproved, `{}`),
		event(90*time.Second, task.KindTaskQueued, `null`),
		event(92*time.Second, task.KindTaskStarted, `{"attempt": 1}`),
		event(100*time.Second, task.KindApprovalAsked, `{"stage": "post"}`),
	}}
	words := func(now time.Time) string {
		var all []string
		for _, p := range timeline.Of(found, 1, 4, now) {
			all = append(all, fmt.Sprintf("%s %s %t", p.Name, p.Took, p.Goes))
		}
		return strings.Join(all, "\n")
	}
	const until = "Received 500 ms false\nHeld: approval required 1m false\nApproved 0 ms false\nQueued 2.0 s false\nRun, 4 tools 8.0 s false\n"
	if got, want := words(began.Add(2*time.Minute)), until+"Waits for approval of its answer  true"; got != want {
		t.Errorf("the timeline is\n%s\nwant\n%s", got, want)
	}
	found.Events = append(found.Events, event(3*time.Minute, task.KindTaskFinished, `{"status": "ok"}`))
	if got, want := words(began.Add(time.Hour)), until+"Waits for approval of its answer 1m false\nEnded: ok  false"; got != want {
		t.Errorf("the timeline is\n%s\nwant\n%s", got, want)
	}
	for _, p := range timeline.Of(found, 0, 0, began.Add(time.Hour)) {
		if p.X < 0 || p.X > 99.5 || p.Width < 0.5 || p.Width > 100 {
			t.Errorf("the bar of %s is %v", p.Name, p)
		}
	}
	if all := timeline.Of(client.TaskDetails{}, 0, 0, began); all != nil {
		t.Errorf("the timeline of nothing is %v", all)
	}
}
