package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
)

// hands plays an agent that hands its work on in CLowl, and has the last word
// once it hears of the end.
func hands(to, mode string) play {
	return func(ctx context.Context, j task.Job) task.Outcome {
		if len(j.Conversation) > 0 {
			return decision(j, "heard of it")
		}
		codec, _ := dialect.Of(envelope.CLowl)
		m, _ := codec.Receive(fmt.Appendf(nil, `{"p":"DLGT","to":%s,"body":{"t":"work","d":{"delegation_mode":%q}}}`, to, mode), j.Task)
		return task.Outcome{Hold: task.Children, Exit: task.Exit{Started: time.Now()}, Messages: []envelope.Message{m}}
	}
}

// Only the agent that takes the work is asked, and what they answer is put
// together, as it is for a request.
func TestWorkIsHandedToEverybodyThatTakesIt(t *testing.T) {
	for name, c := range map[string]struct{ to, mode, summary string }{
		"to go on with":       {`"*"`, "assist", "heard of it"},
		"entirely":            {`"*"`, "transfer", "done, revision 1"},
		"to several entirely": {`["quick","other"]`, "transfer", "done, revision 1"},
	} {
		t.Run("CLOWL-09 "+name, func(t *testing.T) {
			e := newEngine(t)
			e.supports, e.most = map[string][]string{"quick": {"work"}, "other": {"work"}, "chief": {"work"}, "clerk": {"type"}}, 4
			e.dialects = map[string]envelope.Dialect{"chief": envelope.CLowl}
			e.plays["chief"], e.plays["other"], e.plays["clerk"] = hands(c.to, c.mode), quick, quick
			e.judge = choosy(e)
			e.start()
			e.say(req("m1", "chief"))
			if row := e.await("m1", task.Done); row.Status != envelope.OK {
				t.Errorf("m1 ends %s (%s); want ok", row.Status, row.Kind)
			}
			e.wantResult("m1", c.summary)
			for _, agent := range []string{"quick", "other"} {
				if n := e.tasksOf(agent); n != 1 {
					t.Errorf("%s has %d tasks; want one", agent, n)
				}
			}
			if n := e.tasksOf("clerk"); n != 0 {
				t.Errorf("clerk has %d tasks; want none, for it does not take that", n)
			}
			e.gets("ann", "DONE", "m1")
		})
	}
}

func TestWorkThatNobodyTakesIsHandedToNobody(t *testing.T) {
	e := newEngine(t)
	e.most = 4
	e.dialects = map[string]envelope.Dialect{"chief": envelope.CLowl}
	e.plays["chief"] = hands(`"*"`, "transfer")
	e.judge = choosy(e)
	e.start()
	e.say(req("m1", "chief"))
	if row := e.await("m1", task.Done); row.Kind != envelope.NoCapableAgent {
		t.Errorf("m1 ends %s (%s); want no_capable_agent", row.Status, row.Kind)
	}
	e.wantError("ann", "m1", "E010", false)
}

// CLOWL-35, CAP-19: asking everybody is no way round.
func TestWhoMayNotBeHandedWorkIsNoneOfEverybody(t *testing.T) {
	e := newEngine(t)
	e.supports, e.most = map[string][]string{"quick": {"work"}, "other": {"work"}}, 4
	e.denied = map[string]string{"chief>other": "is not among its allowed_agents"}
	e.dialects = map[string]envelope.Dialect{"chief": envelope.CLowl}
	e.plays["chief"], e.plays["other"] = hands(`"*"`, "transfer"), quick
	e.judge = choosy(e)
	e.start()
	e.say(req("m1", "chief"))
	if row := e.await("m1", task.Done); row.Status != envelope.Partial {
		t.Errorf("m1 ends %s (%s); want partial", row.Status, row.Kind)
	}
	if got := e.result("m1"); !strings.Contains(got, "allowed_agents") {
		t.Errorf("result of m1 = %s; want why other was not asked", got)
	}
}

// An agent that fetches its tasks hands them on as one that is run.
func TestWhatLiesInAnInboxIsHandedToEverybodyToo(t *testing.T) {
	e := newEngine(t)
	e.supports, e.most = map[string][]string{"quick": {"work"}, "editor": {"work"}}, 4
	e.dialects = map[string]envelope.Dialect{"editor": envelope.CLowl}
	e.answer = func(j task.Job, said []byte) task.Outcome {
		codec, _ := dialect.Of(envelope.CLowl)
		m, _ := codec.Receive(said, j.Task)
		return task.Outcome{Hold: task.Children, Messages: []envelope.Message{m}}
	}
	e.judge = choosy(e)
	e.start()
	e.say(req("m1", "editor"))
	e.await("m1", task.Waiting)
	e.say(word{mid: "d1", p: "DLGT", from: "editor", to: "*", pid: "m1", d: `{"delegation_mode":"transfer"}`}.line())
	if row := e.await("m1", task.Done); row.Status != envelope.OK {
		t.Errorf("m1 ends %s (%s); want ok, by quick", row.Status, row.Kind)
	}
	if row := e.row("d1"); row.Agent != envelope.Mailboxd || row.Parent != e.row("m1").Seq {
		t.Errorf("d1 = %+v; want it gathered by us, below m1", row)
	}
}

// tasksOf returns how many tasks an agent has, or had.
func (e *engine) tasksOf(agent string) (n int) {
	e.t.Helper()
	for seq := int64(1); ; seq++ {
		row, err := e.parts.Ledger.Task(context.Background(), seq)
		if err != nil {
			return n
		}
		if row.Agent == agent {
			n++
		}
	}
}
