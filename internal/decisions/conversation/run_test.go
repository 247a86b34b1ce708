package conversation_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// acts are all acts of messages.
var acts = []envelope.Act{
	envelope.Requests, envelope.Accepts, envelope.Reports, envelope.Waits, envelope.Completes, envelope.Fails, envelope.Cancels, envelope.Stops,
	envelope.Delegates, envelope.Inquires, envelope.Informs, envelope.Asks, envelope.ReportsStatus, envelope.Announces, envelope.Updates, envelope.SendsHeartbeat,
	envelope.Calls, envelope.Returns, envelope.FailsTool, envelope.Routes, envelope.FailsToRoute,
}

// CLUTCH-33, CLUTCH-35: an agent can't say that a tool returned something, or that a route was chosen.
func TestWhatAnActIsAllowedToDo(t *testing.T) {
	for name, c := range map[string]struct {
		is   func(envelope.Act) bool
		want []envelope.Act
	}{
		"only the daemon sends it": {conversation.OnlyDaemonSends, []envelope.Act{envelope.Returns, envelope.FailsTool, envelope.Routes, envelope.FailsToRoute}},
		"it is only recorded": {conversation.OnlyRecorded, []envelope.Act{
			envelope.Announces, envelope.Updates, envelope.SendsHeartbeat, envelope.Returns, envelope.FailsTool, envelope.Routes, envelope.FailsToRoute,
		}},
		"it resumes a task": {conversation.Resumes, []envelope.Act{
			envelope.Completes, envelope.Fails, envelope.Inquires, envelope.Informs, envelope.Asks, envelope.ReportsStatus, envelope.Returns, envelope.FailsTool,
		}},
		"it asks for work": {func(act envelope.Act) bool { return conversation.AsksForWork(envelope.Message{Act: act}) }, []envelope.Act{
			envelope.Requests, envelope.Delegates,
		}},
		"it acknowledges": {func(act envelope.Act) bool { return conversation.Acknowledges(envelope.Message{Act: act}) }, []envelope.Act{
			envelope.Accepts, envelope.Stops,
		}},
	} {
		for _, act := range acts {
			if got := c.is(act); got != slices.Contains(c.want, act) {
				t.Errorf("%s: %s: %t; want %t", name, act, got, !got)
			}
		}
	}
}

// CLUTCH-33, CLUTCH-89: the reply to a call has what the tool returned, or why there is nothing.
func TestACallOfAToolHasAReplyOfTheServer(t *testing.T) {
	now, about := time.Unix(9, 0), task.Task{ID: "t1", Agent: "worker"}
	m := envelope.Message{Act: envelope.Calls, ID: "c1", Data: []byte(`{"tool":"mcp:docs","args":{}}`)}
	result := `{"content":[{"type":"text","text":"yes"}],"structuredContent":{"a":1},"isError":false,"_meta":{"x":1}}`
	m.Returned = &envelope.ToolReturn{Result: jsontext.Value(result)}
	reply := conversation.ReturnTool(m, about, now)
	const want = `{"content":[{"type":"text","text":"yes"}],"structuredContent":{"a":1},"success":true,"tool":"mcp:docs"}`
	if reply.Act != envelope.Returns || string(reply.Data) != want || reply.Cause != "c1" || reply.From != envelope.MCP ||
		!slices.Equal(reply.To, []string{"worker"}) {
		t.Errorf("ReturnTool = %+v with %s; want the result %s", reply, reply.Data, want)
	}
	m.Returned = &envelope.ToolReturn{Failure: envelope.Failure{Kind: envelope.PolicyViolation, Message: "no"}}
	reply = conversation.ReturnTool(m, about, now)
	if reply.Act != envelope.FailsTool || reply.Failure != m.Returned.Failure || reply.Text != "no" || reply.From != envelope.MCP {
		t.Errorf("ReturnTool = %+v; want the reason", reply)
	}
	if _, refused := conversation.Refuse(m, about, now); refused {
		t.Error("a call that mailboxd has decided about is refused again")
	}
	for act, from := range map[envelope.Act]string{envelope.Returns: envelope.MCP, envelope.FailsTool: envelope.Mailboxd} {
		said := task.Message{Act: act, From: from, Via: task.ByDaemon}
		if !conversation.HasEvent(said) || !conversation.InHistory(said, about) {
			t.Errorf("%s of %s has no event, or its agent doesn't get it", act, from)
		}
	}
}

func TestAMessageOfARunIsRefusedIfItHasNoEffect(t *testing.T) {
	now, about := time.Unix(9, 0), task.Task{ID: "t1", Agent: "worker"}
	for name, c := range map[string]struct {
		m       envelope.Message
		refused bool
		act     envelope.Act
		code    string
	}{
		"a call of a tool":            {envelope.Message{Act: envelope.Calls}, true, envelope.FailsTool, "TOOL_UNAVAILABLE"},
		"a delegation without a mode": {envelope.Message{Act: envelope.Delegates, Dialect: envelope.CLowl}, true, envelope.Fails, ""},
		"a delegation":                {envelope.Message{Act: envelope.Delegates, Dialect: envelope.CLowl, Tie: envelope.Fork}, false, "", ""},
		"a delegation in CAP":         {envelope.Message{Act: envelope.Delegates, Dialect: envelope.CAP}, false, "", ""},
		"news":                        {envelope.Message{Act: envelope.Informs, Dialect: envelope.CLowl}, false, "", ""},
	} {
		reply, refused := conversation.Refuse(c.m, about, now)
		if refused != c.refused || refused && (reply.Act != c.act || reply.Failure.Code != c.code || !slices.Equal(reply.To, []string{"worker"})) {
			t.Errorf("%s: Refuse = %+v, %t; want refused %t with %s %s", name, reply, refused, c.refused, c.act, c.code)
		}
		if c.refused {
			want := envelope.OutputInvalid
			if c.code != "" {
				want = envelope.DependencyFailed
			}
			if got := conversation.RefusedError([]envelope.Message{c.m}); got.Kind != want || got.Code != c.code {
				t.Errorf("%s: RefusedError = %+v; want %s %q", name, got, want, c.code)
			}
		}
	}
}

func TestAnErrorInClutchMayAskForAnotherAttempt(t *testing.T) {
	clutch := &envelope.ClutchPart{}
	for name, c := range map[string]struct {
		m    envelope.Message
		want bool
	}{
		"it may":                 {envelope.Message{Clutch: clutch, Act: envelope.Fails, Data: jsontext.Value(`{"retryable":true}`)}, true},
		"it may not":             {envelope.Message{Clutch: clutch, Act: envelope.Fails, Data: jsontext.Value(`{"retryable":false}`)}, false},
		"it is no error":         {envelope.Message{Clutch: clutch, Act: envelope.Completes, Data: jsontext.Value(`{"retryable":true}`)}, false},
		"it is not Clutch":       {envelope.Message{Act: envelope.Fails, Data: jsontext.Value(`{"retryable":true}`)}, false},
		"its data can't be read": {envelope.Message{Clutch: clutch, Act: envelope.Fails, Data: jsontext.Value(`{"retryable":true,`)}, false},
	} {
		if got := conversation.AsksForAttempt(c.m); got != c.want {
			t.Errorf("%s: AsksForAttempt = %t; want %t", name, got, c.want)
		}
	}
}

func TestWhichMessageEndsARun(t *testing.T) {
	for name, c := range map[string]struct {
		m, read envelope.Message
		want    bool
	}{
		"a delegation":         {envelope.Message{Act: envelope.Delegates, Tie: envelope.Assist}, envelope.Message{}, true},
		"a fork":               {envelope.Message{Act: envelope.Delegates, Tie: envelope.Fork}, envelope.Message{}, false},
		"another request":      {envelope.Message{Act: envelope.Requests}, envelope.Message{}, false},
		"an answer":            {envelope.Message{Act: envelope.Informs}, envelope.Message{Act: envelope.Completes}, true},
		"an error":             {envelope.Message{Act: envelope.Informs}, envelope.Message{Act: envelope.Fails}, true},
		"news":                 {envelope.Message{Act: envelope.Informs}, envelope.Message{Act: envelope.Informs}, false},
		"a fork read as error": {envelope.Message{Act: envelope.Delegates, Tie: envelope.Fork}, envelope.Message{Act: envelope.Fails}, false},
	} {
		if got := conversation.EndsRun(c.m, c.read); got != c.want {
			t.Errorf("%s: EndsRun = %t; want %t", name, got, c.want)
		}
	}
}

// CLOWL-40: a line must not answer a task while its agent runs.
func TestALineOfARunningAgentIsNotItsAnswer(t *testing.T) {
	about := task.Task{Agent: "worker", Requester: "boss", State: task.Running}
	answer := envelope.Message{Dialect: envelope.CAP, Act: envelope.Informs, From: "worker", To: []string{"boss"}}
	for name, c := range map[string]struct {
		change func(*envelope.Message, *task.Task)
		want   bool
	}{
		"an answer to the requester": {func(*envelope.Message, *task.Task) {}, true},
		"in another dialect":         {func(m *envelope.Message, _ *task.Task) { m.Dialect = envelope.CLowl }, false},
		"a question":                 {func(m *envelope.Message, _ *task.Task) { m.WantsReply = true }, false},
		"an inquiry":                 {func(m *envelope.Message, _ *task.Task) { m.Act = envelope.Asks }, false},
		"of another agent":           {func(m *envelope.Message, _ *task.Task) { m.From = "other" }, false},
		"to somebody else":           {func(m *envelope.Message, _ *task.Task) { m.To = []string{"other"} }, false},
		"of a task that waits":       {func(_ *envelope.Message, t *task.Task) { t.State = task.Waiting }, false},
	} {
		m, row := answer, about
		c.change(&m, &row)
		if got := conversation.AnswersForRun(m, row); got != c.want {
			t.Errorf("%s: AnswersForRun = %t; want %t", name, got, c.want)
		}
	}
}

// CLOWL-28.
func TestAQuestionReachesTheAgentThatWorks(t *testing.T) {
	for name, c := range map[string]struct {
		dialect envelope.Dialect
		state   task.State
		to      string
		want    bool
	}{
		"it runs":           {envelope.CLowl, task.Running, "worker", true},
		"it waits":          {envelope.CLowl, task.Waiting, "worker", true},
		"it is held":        {envelope.CLowl, task.Held, "worker", false},
		"in CAP":            {envelope.CAP, task.Running, "worker", false},
		"to somebody else":  {envelope.CLowl, task.Running, "other", false},
		"it ended long ago": {envelope.CLowl, task.Done, "worker", false},
	} {
		m := envelope.Message{Dialect: c.dialect, To: []string{c.to}}
		if got := conversation.Interrupts(m, task.Task{Agent: "worker", State: c.state}); got != c.want {
			t.Errorf("%s: Interrupts = %t; want %t", name, got, c.want)
		}
	}
}

// CLUTCH-90: a task that came without an agent is accepted when its agent is chosen.
func TestTheEventThatChoseAnAgent(t *testing.T) {
	event := func(seq int64, kind task.Kind, revision int, data string) task.Event {
		return task.Event{Seq: seq, Kind: kind, Revision: revision, Data: jsontext.Value(data)}
	}
	routed := event(1, task.KindTaskAccepted, 1, `{"held":["routing"]}`)
	again := event(3, task.KindTaskResubmitted, 2, `{"held":["approval","routing"]}`)
	for name, c := range map[string]struct {
		revision int
		events   []task.Event
		want     int64
	}{
		"it named its agent":              {1, []task.Event{event(1, task.KindTaskAccepted, 1, `{}`), event(2, task.KindRoutingDecided, 1, `{}`)}, 0},
		"none is chosen yet":              {1, []task.Event{routed}, math.MaxInt64},
		"one is chosen":                   {1, []task.Event{routed, event(2, task.KindRoutingDecided, 1, `{}`)}, 2},
		"for another revision":            {1, []task.Event{routed, event(2, task.KindRoutingDecided, 2, `{}`)}, math.MaxInt64},
		"of a revision that came again":   {2, []task.Event{routed, event(2, task.KindRoutingDecided, 1, `{}`), again, event(4, task.KindRoutingDecided, 2, `{}`)}, 4},
		"and none is chosen for that yet": {2, []task.Event{routed, event(2, task.KindRoutingDecided, 1, `{}`), again}, math.MaxInt64},
	} {
		if got := conversation.ChosenBy(c.revision, c.events); got != c.want {
			t.Errorf("%s: ChosenBy = %d; want %d", name, got, c.want)
		}
	}
}

func TestARequestWithoutAnAgentIsRouted(t *testing.T) {
	for agent, want := range map[string]bool{envelope.Everybody: true, "worker": false} {
		if got := conversation.IsRouted(envelope.Task{Agent: agent}); got != want {
			t.Errorf("IsRouted(%q) = %t; want %t", agent, got, want)
		}
	}
}
