package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/access/replay"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/strict"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// research is a done task of an AINL requester.
func research() replay.Subject {
	raw := `{"schema_version":"1.0","task_id":"t1","requester_id":"ui","target_agent":"ken","target_role":"executor",` +
		`"task_type":"research","description":"Find it","input":{"refs":[],"payload":{"q":1}}}`
	request, _ := dialect.DecodeTask(envelope.AINL, []byte(raw), envelope.Strict)
	return replay.Subject{
		Row: task.Task{
			Seq: 1, ID: "t1", Revision: 1, Dialect: envelope.AINL, State: task.Done, Attempt: 1, Agent: "ken", Requester: "ui",
			Type: "research", Status: envelope.OK, Finished: noon,
		},
		Run: "run_1", Thread: "thr_1", Parent: "t0", Request: request, End: 4,
		Result: envelope.Result{TaskID: "t1", AgentID: "ken", Status: envelope.OK, Output: envelope.Output{
			Summary: "found", Extra: jsontext.Value(`{"findings":["a"]}`),
		}}.Encode(),
	}
}

// events are what happened to the task.
var events = []task.Event{
	{Seq: 1, Time: noon, Kind: task.KindTaskAccepted, Task: "t1", Revision: 1, Data: jsontext.Value(`{"held":["approval"]}`)},
	{Seq: 2, Time: noon, Kind: task.KindTaskStarted, Task: "t1", Revision: 1, Data: jsontext.Value(`{"attempt":1}`)},
	{Seq: 3, Time: noon, Kind: task.KindBudgetSettled, Task: "t1", Revision: 1, Data: jsontext.Value(`{"tokens":7}`)},
	{Seq: 4, Time: noon, Kind: task.KindTaskFinished, Task: "t1", Revision: 1, Data: jsontext.Value(`{"status":"ok"}`)},
}

func render(s replay.Subject, all []task.Event) (messages []replay.Message) {
	for _, e := range all {
		messages = append(messages, replay.Render(e, s, nil)...)
	}
	return messages
}

// CLUTCH-30, CLUTCH-72, CLUTCH-85.
func TestEachEventIsAMessageWithItsPlace(t *testing.T) {
	s := research()
	messages := render(s, events)
	want := []string{"1 task.request ui", "1 task.accept ken", "1 task.progress ken", "2 task.progress ken", "3 chat.system mailboxd", "4 task.result ken"}
	var got []string
	ids := map[string]bool{}
	for _, m := range messages {
		got = append(got, fmt.Sprintf("%d %s %s", m.Seq, m.Type, m.From))
		if err := strict.Clutch(m.Line); err != nil {
			t.Errorf("%s: %v", m.Line, err)
		}
		if m.Run != "run_1" || m.Thread != "thr_1" || m.Task != "t1" || !strings.Contains(string(m.Line), `"parent_task_id":"t0"`) || ids[m.ID] {
			t.Errorf("%s: want the names of its task, and an id of its own", m.Line)
		}
		ids[m.ID] = true
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("messages:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if again := render(s, events); string(again[3].Line) != string(messages[3].Line) {
		t.Errorf("a message is %s, and then %s", messages[3].Line, again[3].Line)
	}
	if differences := replay.Check(messages, []replay.Subject{s}); len(differences) > 0 {
		t.Errorf("Check = %q; want no difference", differences)
	}
}

func TestAPlantedDifferenceIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(*replay.Subject, *[]task.Event)
		want  string
	}{
		"another end":         {func(s *replay.Subject, _ *[]task.Event) { s.Row.Status, s.Row.Kind = envelope.Failed, envelope.Timeout }, "it ended as ok, and in the ledger as timeout"},
		"another agent":       {func(s *replay.Subject, _ *[]task.Event) { s.Row.Agent = "bob" }, "ken ended it, and bob in the ledger"},
		"another parent":      {func(s *replay.Subject, _ *[]task.Event) { s.Parent = "t9" }, `its parent is "t0", and "t9" in the ledger`},
		"an attempt too few":  {func(s *replay.Subject, _ *[]task.Event) { s.Row.Attempt = 0 }, "attempt 1 began, and the ledger has 0"},
		"an end that is not":  {func(s *replay.Subject, _ *[]task.Event) { s.Row.State = task.Running }, "it has 1 terminal messages, and its state in the ledger is running"},
		"a lost end":          {func(_ *replay.Subject, e *[]task.Event) { *e = (*e)[:3] }, "it has 0 terminal messages, and its state in the ledger is done"},
		"an end twice":        {func(_ *replay.Subject, e *[]task.Event) { *e = append(*e, (*e)[3]) }, "it has 2 terminal messages"},
		"a lost request":      {func(_ *replay.Subject, e *[]task.Event) { *e = (*e)[1:] }, "no message requests it"},
		"a task without rows": {func(s *replay.Subject, _ *[]task.Event) { s.Row.ID = "t2" }, "the ledger does not have it"},
	} {
		s, all := research(), append([]task.Event{}, events...)
		c.plant(&s, &all)
		differences := strings.Join(replay.Check(render(research(), all), []replay.Subject{s}), "; ")
		if !strings.Contains(differences, c.want) {
			t.Errorf("%s: Check = %q; want %q", name, differences, c.want)
		}
	}
}
