package conversation_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// CLOWL-28.
func TestAQuestionAboutATaskAsksForItsStatus(t *testing.T) {
	for name, c := range map[string]struct {
		m    envelope.Message
		want bool
	}{
		"to the daemon":           {envelope.Message{To: []string{envelope.Mailboxd, envelope.Mailboxd}, Text: "how far?"}, true},
		"it names a task":         {envelope.Message{To: []string{"a"}, Task: "t1", Data: jsontext.Value(`{"task_id":"t1"}`)}, true},
		"of the type":             {envelope.Message{To: []string{"a"}, Cause: "m1", Type: "status", Data: jsontext.Value(`{"more":1}`)}, true},
		"it asks something else":  {envelope.Message{To: []string{"a"}, Cause: "m1", Type: "which", Data: jsontext.Value(`{"more":1}`)}, false},
		"it asks that in words":   {envelope.Message{To: []string{"a"}, Cause: "m1", Type: "status", Text: "which?", Data: jsontext.Value(`{}`)}, false},
		"it names no task":        {envelope.Message{To: []string{"a"}, Data: jsontext.Value(`{}`)}, false},
		"its data are no object":  {envelope.Message{To: []string{"a"}, Task: "t1", Data: jsontext.Value(`[]`)}, false},
		"to the daemon and other": {envelope.Message{To: []string{envelope.Mailboxd, "a"}}, false},
	} {
		if got := conversation.AsksForStatus(c.m); got != c.want {
			t.Errorf("%s: AsksForStatus() = %t; want %t", name, got, c.want)
		}
	}
}

func TestWhatCancelsATask(t *testing.T) {
	about := task.Task{Agent: "worker", Requester: "boss"}
	stop := envelope.Failure{Kind: envelope.Cancelled}
	for name, c := range map[string]struct {
		m    envelope.Message
		want bool
	}{
		"CNCL":                     {envelope.Message{Act: envelope.Cancels}, true},
		"499 to the agent":         {envelope.Message{Act: envelope.Fails, Failure: stop, From: "boss", To: []string{"worker"}}, true},
		"499 by the agent":         {envelope.Message{Act: envelope.Fails, Failure: stop, From: "worker", To: []string{"worker"}}, false},
		"499 to somebody else":     {envelope.Message{Act: envelope.Fails, Failure: stop, From: "boss", To: []string{"other"}}, false},
		"another error":            {envelope.Message{Act: envelope.Fails, From: "boss", To: []string{"worker"}}, false},
		"a message without a code": {envelope.Message{Act: envelope.Informs, From: "boss", To: []string{"worker"}}, false},
	} {
		if got := conversation.Cancels(c.m, about); got != c.want {
			t.Errorf("%s: Cancels() = %t; want %t", name, got, c.want)
		}
	}
	for m, want := range map[[2]string]string{{"", "m1"}: "m1", {"t1", ""}: "t1", {"m1", "m1"}: "m1", {"t1", "m1"}: "t1", {"h-c14cddc033f64b9dea80ea675cf280a0", "a/b"}: "a/b"} {
		if got := conversation.CancelledRequest(envelope.Message{Task: envelope.ID(m[0]), Cause: m[1]}); got != want {
			t.Errorf("CancelledRequest(%q) = %q; want %q", m, got, want)
		}
	}
}

// CLOWL-38.
func TestAMessageIsCompletedWithoutItsAgent(t *testing.T) {
	now := time.Unix(9, 0)
	about, c := task.Task{Agent: "worker", Requester: "boss"}, task.Conversation{Message: "m1", Thread: "c1"}
	m := conversation.Complete(envelope.Message{Dialect: envelope.CLowl, From: "boss", Thread: "own", Trace: "x1"}, about, c, "m2", now)
	if got, want := fmt.Sprint(m.From, m.To, m.Thread, m.Trace, m.ID, m.Cause, m.Time.Unix()), "worker[boss]c1x1m2m19"; got != want {
		t.Errorf("Complete() = %s; want %s", got, want)
	}
	m = conversation.Complete(envelope.Message{To: []string{"other"}}, about, c, "m2", now)
	if m.Dialect != envelope.AINL || m.ID != "" || m.Cause != "" || !slices.Equal(m.To, []string{"other"}) {
		t.Errorf("Complete() = %+v; want a message without names in AINL, to other", m)
	}
}

func TestALineIsDeliveredAsItIsIfItSaysTheSame(t *testing.T) {
	m := envelope.Message{Act: envelope.Informs, From: "a", To: []string{"b"}, ID: "m1", Raw: []byte("line")}
	for name, c := range map[string]struct {
		change func(m, read *envelope.Message)
		want   bool
	}{
		"the same":           {func(_, _ *envelope.Message) {}, true},
		"no line":            {func(m, _ *envelope.Message) { m.Raw = nil }, false},
		"two lines":          {func(m, _ *envelope.Message) { m.Raw = []byte("a\nb") }, false},
		"another sender":     {func(_, read *envelope.Message) { read.From = "c" }, false},
		"another recipient":  {func(m, _ *envelope.Message) { m.To = []string{"c"} }, false},
		"another id":         {func(_, read *envelope.Message) { read.ID = "m2" }, false},
		"an answer replaced": {func(_, read *envelope.Message) { read.Act = envelope.Completes }, false},
		"an answer":          {func(m, read *envelope.Message) { m.Act, read.Act = envelope.Completes, envelope.Completes }, true},
	} {
		said, read := m, m
		c.change(&said, &read)
		if got := conversation.Deliverable(said, read); got != c.want {
			t.Errorf("%s: Deliverable() = %t; want %t", name, got, c.want)
		}
	}
}

func TestTheDialectOfARecipient(t *testing.T) {
	about := task.Task{Requester: "boss", Dialect: envelope.CLowl}
	for name, c := range map[string]struct {
		to         string
		reads, own envelope.Dialect
		want       envelope.Dialect
	}{
		"an agent":                        {"worker", envelope.CAP, envelope.CLowl, envelope.CAP},
		"an agent of AINL":                {"worker", envelope.AINL, envelope.CAP, envelope.CAP},
		"the requester":                   {"boss", "", envelope.CAP, envelope.CLowl},
		"the requester that is an agent":  {"boss", envelope.CAP, envelope.CLowl, envelope.CAP},
		"a requester that reads no words": {"boss", envelope.AINL, envelope.CAP, envelope.CAP},
		"anybody else":                    {"user", "", envelope.CAP, envelope.CAP},
	} {
		if got := conversation.DialectFor(c.to, c.reads, about, c.own); got != c.want {
			t.Errorf("%s: DialectFor() = %s; want %s", name, got, c.want)
		}
	}
}

// CLOWL-24.
func TestProgressOfAReport(t *testing.T) {
	for data, want := range map[string]string{
		`{"pct":40,"note":"reading"}`: "map[note:reading pct:40]",
		`{"pct":"40"}`:                "map[]",
		`{"pct":1,"note":["odd"]}`:    "map[pct:1]",
		``:                            "map[]",
	} {
		m := envelope.Message{Data: jsontext.Value(data)}
		if data == "" {
			m.Data = nil
		}
		if got := fmt.Sprint(conversation.Progress(m)); got != want {
			t.Errorf("Progress(%s) = %s; want %s", data, got, want)
		}
	}
}

// CLUTCH-91: a line must not claim to be from a part of mailboxd, or have a type that only
// mailboxd sends.
func TestDistrustInClutch(t *testing.T) {
	for _, name := range []string{"router", "registry", "mcp", "orchestrator"} {
		if got := conversation.Distrust(envelope.Message{From: name, Clutch: &envelope.ClutchPart{Type: "task.request"}}, ""); got != "is a reserved name" {
			t.Errorf("%s: Distrust() = %q", name, got)
		}
	}
	for word, trusted := range map[string]bool{"chat.system": false, "routing.decision": false, "routing.failure": false, "chat.message": true, "task.request": true} {
		if got := conversation.Distrust(envelope.Message{From: "ann", Clutch: &envelope.ClutchPart{Type: word}}, ""); (got == "") != trusted {
			t.Errorf("%s: Distrust() = %q", word, got)
		}
	}
}

// CLOWL-18.
func TestDistrust(t *testing.T) {
	for name, c := range map[string]struct {
		from, secret, here, want string
	}{
		"no secret here":     {"ann", "any", "", ""},
		"the secret":         {"ann", "s", "s", ""},
		"another secret":     {"ann", "t", "s", "has another secret here"},
		"no secret":          {"ann", "", "s", "has a secret here, which is missing"},
		"the daemon's name":  {envelope.Mailboxd, "", "", "is a reserved name"},
		"the router's name":  {"router", "s", "s", "is a reserved name"},
		"a person's message": {"user", "", "", ""},
	} {
		if got := conversation.Distrust(envelope.Message{From: c.from, Secret: c.secret}, c.here); got != c.want {
			t.Errorf("%s: Distrust() = %q; want %q", name, got, c.want)
		}
	}
}

// CLOWL-29.
func TestCapabilitiesOfTheDaemonAreThoseOfItsAgents(t *testing.T) {
	supports := map[string][]string{"a": {"search", "read"}, "b": {"search"}}
	got := ""
	for _, m := range conversation.Capabilities([]string{"a", "b", "c"}, func(name string) []string { return supports[name] }) {
		got += m.From + " " + string(m.Data) + "\n"
	}
	want := `mailboxd {"clowl":"0.2","supports":["read","search"]}
a {"clowl":"0.2","supports":["search","read"]}
b {"clowl":"0.2","supports":["search"]}
c {"clowl":"0.2","supports":[]}
`
	if got != want {
		t.Errorf("Capabilities() = %s; want %s", got, want)
	}
}
