package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// ask appends a task line of a requester.
func (e *engine) ask(requester, id, agent string, members ...string) {
	e.t.Helper()
	e.append(requester, id, agent, members...)
	e.Look(e.t.Context())
}

// append is ask, without a look at it.
func (e *engine) append(requester, id, agent string, members ...string) {
	e.t.Helper()
	_, _, err := mailbox.Append(e.parts.Box.Path(), []byte(requestOf(requester, id, agent, members...)))
	if err != nil {
		e.t.Error(err) // in an agent's place Fatal would not be the test's end
	}
}

// members returns an engine in which agents work until they are told.
func members(t *testing.T, agents ...string) (*engine, map[string]chan int64) {
	e := newEngine(t)
	words := map[string]chan int64{}
	for _, agent := range agents {
		words[agent] = make(chan int64)
		e.plays[agent] = reporting(words[agent])
	}
	e.judge = func(t envelope.Task, _ time.Time) task.Verdict {
		v := task.Verdict{Admit: true, Terms: task.Terms{Budget: t.Budget}}
		if t.Requester == "tester" && t.Budget != (envelope.Budget{}) {
			v.Accounts = []task.Account{{Owner: "requester:tester", Limit: tokens(1000)}}
		}
		return v
	}
	return e, words
}

// AINL-01.
func TestALineOfAnAgentAtWorkIsAChildOfItsTask(t *testing.T) {
	e, words := members(t, "chief", "clerk")
	e.start()
	e.ask("tester", "first", "chief")
	e.awaitWork("first")
	e.ask("tester", "second", "chief")
	e.awaitWork("second")
	e.ask("chief", "of-latest", "clerk")
	e.ask("chief", "of-chosen", "clerk", `"metadata":{"mbx.parent_task_id":"first"}`)
	e.ask("chief", "of-stranger", "clerk", `"metadata":{"mbx.parent_task_id":"of-latest"}`)
	e.ask("tester", "nobodys", "clerk", `"metadata":{"mbx.parent_task_id":"first"}`)
	for child, parent := range map[string]string{"of-latest": "second", "of-chosen": "first", "of-stranger": "second", "nobodys": ""} {
		if row := e.row(child); row.Parent != e.row(parent).Seq {
			t.Errorf("%s has the parent %d; want %q", child, row.Parent, parent)
		}
	}
	e.wantEvent("first", "task.delegated")
	for child, words := range map[string]string{"of-latest": `"parent":"second"`, "of-stranger": "read as second", "nobodys": "the requester is no agent here"} {
		if _, data := e.history(child); !strings.Contains(data, words) {
			t.Errorf("the events of %s = %s; want %q in it", child, data, words)
		}
	}
	for _, agent := range words {
		close(agent)
	}
	e.must(e.Idle(t.Context()))
	e.Look(t.Context()) // at what they asked for before they ended
	e.ask("chief", "later", "quick")
	if row := e.await("later", task.Done); row.Parent != 0 {
		t.Errorf("later has the parent %d; want none, for no run of its requester goes on", row.Parent)
	}
}

// A line is written before its run ends, and read after the end.
func TestALineOfARunThatHasEndedMeanwhileIsItsTasksChild(t *testing.T) {
	e := newEngine(t)
	e.plays["hasty"] = func(ctx context.Context, j task.Job) task.Outcome {
		e.append("hasty", string(j.Task.ID)+"-child", "hasty")
		return quick(ctx, j)
	}
	e.start()
	e.ask("tester", "root", "hasty")
	e.must(e.Idle(t.Context()))
	if !e.Unread() {
		t.Error("Unread() = false; want true, for a run has ended since the look")
	}
	e.Look(t.Context())
	child := e.await("root-child", task.Done)
	if child.Parent != e.row("root").Seq || child.Kind != envelope.DelegationCycle {
		t.Errorf("root-child ends %s (%s), of %d; want it to be root's child, and a cycle", child.Status, child.Kind, child.Parent)
	}
	if e.Unread() {
		t.Error("Unread() = true after a look; want false")
	}
}

// AINL-01, CLOWL-35.
func TestAgentsThatAskAgentsHaveAnEnd(t *testing.T) {
	for name, mode := range map[string]envelope.Mode{"enforce": envelope.Enforce, "warn": envelope.Warn, "off": envelope.Off} {
		t.Run("AINL-01 lineage "+name, func(t *testing.T) { agentsHaveAnEnd(t, mode) })
	}
}

func agentsHaveAnEnd(t *testing.T, mode envelope.Mode) {
	t.Helper()
	e, words := members(t, "a", "b", "c")
	e.mode = mode
	e.opts.Depth, e.opts.Children = 2, 2
	e.start()
	e.ask("tester", "root", "a")
	e.awaitWork("root")
	e.ask("a", "child", "b")
	e.awaitWork("child")
	e.ask("b", "grandchild", "c")
	e.awaitWork("grandchild")
	e.ask("c", "too-deep", "quick")
	e.ask("b", "cycle", "a")
	e.ask("a", "second", "quick", `"metadata":{"mbx.parent_task_id":"root"}`)
	e.ask("a", "too-many", "quick", `"metadata":{"mbx.parent_task_id":"root"}`)
	for id, want := range map[string]struct {
		kind  envelope.Kind
		words string
	}{
		"too-deep": {envelope.PolicyViolation, "requester_id: the task grandchild"},
		"cycle":    {envelope.DelegationCycle, "target_agent: agent \\\"a\\\" has the task root"},
		"too-many": {envelope.PolicyViolation, "requester_id: the task root of agent \\\"a\\\" has asked for 2 others"},
	} {
		row := e.row(id)
		_, data := e.history(id)
		refused, notified := row.Kind == want.kind, strings.Contains(data, want.words)
		if refused != (mode == envelope.Enforce) || notified != (mode != envelope.Off) || row.Parent == 0 {
			t.Errorf("%s ends %s (%s), and its events are %s; want %v, told %v", id, row.Status, row.Kind, data, want, mode != envelope.Off)
		}
	}
	for _, agent := range words {
		close(agent) // they have spent nothing
	}
	e.must(e.Idle(t.Context()))
	e.end()
}

// A revision of its own task waits until the run is over, and is no way round.
func TestAnAgentThatRevisesItsOwnTaskIsAskedNoSecondTime(t *testing.T) {
	e, words := members(t, "a")
	e.start()
	e.ask("tester", "t1", "a")
	e.awaitWork("t1")
	e.ask("a", "t1", "a")
	words["a"] <- 0
	e.until("the revision is refused", func() bool { row := e.row("t1"); return row.Revision == 2 && row.Put })
	if row := e.row("t1"); row.Kind != envelope.DelegationCycle {
		t.Errorf("t1 ends %s (%s); want delegation_cycle", row.Status, row.Kind)
	}
}

// A revision behind a child that runs is one more thing asked for.
func TestRevisionsOfAChildAreNoWayRoundTheLimit(t *testing.T) {
	e, words := members(t, "chief", "clerk")
	e.opts.Children = 2
	e.start()
	e.ask("tester", "root", "chief")
	e.awaitWork("root")
	e.ask("chief", "child", "clerk")
	e.awaitWork("child")
	e.ask("chief", "other", "clerk")
	e.awaitWork("other")
	e.ask("chief", "child", "clerk", `"metadata":{"again":1}`)
	words["clerk"] <- 0
	words["clerk"] <- 0
	e.until("the revision is refused", func() bool { row := e.row("child"); return row.Revision == 2 && row.Put })
	e.wantResult("child", "policy_violation", "has asked for 2 others already")
	close(words["chief"])
}

// A retry is the same request, of the same run.
func TestARetryOfAChildIsStillOne(t *testing.T) {
	e, words := members(t, "chief", "clerk")
	e.opts.Children = 3
	e.start()
	e.ask("tester", "root", "chief", budget(500))
	e.awaitWork("root")
	e.ask("chief", "child", "clerk")
	e.awaitWork("child")
	e.must(e.Cancel(t.Context(), "child", me))
	e.must(e.Retry(t.Context(), "child", me))
	row := e.awaitWork("child")
	if row.Parent != e.row("root").Seq || row.Depth != 1 {
		t.Errorf("child has the parent %d and depth %d; want root, 1", row.Parent, row.Depth)
	}
	words["clerk"] <- 10
	e.await("child", task.Done)
	e.ask("chief", "cycle", "chief")
	e.await("cycle", task.Done)
	if err := e.Retry(t.Context(), "cycle", me); err == nil || !strings.Contains(err.Error(), "still refused: target_agent: agent \"chief\" has the task root") {
		t.Errorf("Retry(cycle) = %v; want it still refused", err)
	}
	words["chief"] <- 0
}

func TestAChildSpendsFromWhatItsParentHasLeft(t *testing.T) {
	e, words := members(t, "clerk")
	meter, verdict := make(chan int64), make(chan error)
	e.plays["chief"] = spender(meter, verdict)
	say := func(n int64, wants string) {
		meter <- n
		if err := <-verdict; fmt.Sprint(err) != wants {
			t.Errorf("at %d tokens the parent is told %v; want %s", n, err, wants)
		}
	}
	has := func(reserved, spent int64) {
		t.Helper()
		e.wantBalance("requester:tester", reserved, spent)
	}
	e.start()
	e.ask("tester", "parent", "chief", budget(500))
	e.awaitWork("parent")
	has(500, 0)
	say(100, "<nil>")
	e.ask("chief", "c1", "clerk", budget(150))
	e.awaitWork("c1")
	e.ask("chief", "c2", "clerk") // has what the parent has left: 250
	e.awaitWork("c2")
	e.ask("chief", "c3", "clerk", budget(10))
	e.await("c3", task.Held) // nothing is left
	has(500, 0)              // once, whatever program has it
	for range 2 {
		words["clerk"] <- 50
	}
	e.awaitWork("c3")
	words["clerk"] <- 10
	e.await("c3", task.Done)
	has(390, 110)
	say(391, "the agent used 391 tokens of 390")
	e.await("parent", task.Done)
	has(0, 391+110)
	for owner, want := range map[string]int64{"agent:chief": 501, "agent:clerk": 110, "requester:chief": 110} {
		e.wantBalance(owner, 0, want)
	}
}

// spender plays an agent that reports its cost when the test tells it to, and
// sends the verdict back.
func spender(meter <-chan int64, verdict chan<- error) play {
	return func(_ context.Context, j task.Job) task.Outcome {
		for n := range meter {
			err := j.Meter(envelope.Cost{Tokens: n})
			verdict <- err
			if err != nil {
				return stopped(j, n, err)
			}
		}
		return spent(j, 0)
	}
}

// wantBalance fails the test when an account does not stand there.
func (e *engine) wantBalance(owner string, reserved, spent int64) {
	e.t.Helper()
	if b := e.balance(owner); b.Reserved.Tokens != reserved || b.Spent.Tokens != spent {
		e.t.Errorf("%s has %d reserved and %d spent; want %d, %d", owner, b.Reserved.Tokens, b.Spent.Tokens, reserved, spent)
	}
}

func TestAChildOfAParentThatIsOverSpendsWhatThatLeft(t *testing.T) {
	e, words := members(t, "chief", "clerk")
	e.opts.Workers = 1
	e.start()
	e.ask("tester", "parent", "chief", budget(500))
	e.awaitWork("parent")
	for _, id := range []string{"c1", "c2"} {
		e.ask("chief", id, "clerk")
	}
	words["chief"] <- 100
	e.await("parent", task.Done)
	e.awaitWork("c1")
	if b := e.balance("requester:tester"); b.Spent.Tokens != 100 || b.Reserved.Tokens != 400 {
		t.Errorf("the requester = %+v; want 100 spent, and 400 reserved for the child", b)
	}
	words["clerk"] <- 400
	e.await("c2", task.Done)
	e.wantResult("c2", "budget_exceeded", "its parent parent has spent 500 of 500 tokens")
}

// AINL-01, AINL-21.
func TestALineOfAnAgentThatHasClaimedATaskIsAChildOfIt(t *testing.T) {
	e, words := members(t, "clerk")
	e.start()
	e.ask("editor", "before", "quick")
	e.delivered("first", `"budget_limit":{"tokens":100}`)
	e.delivered("second")
	e.ask("editor", "unclaimed", "quick")
	l := e.claim()
	e.ask("editor", "child", "clerk")
	e.awaitWork("child")
	for id, parent := range map[string]string{"before": "", "unclaimed": "", "child": "first"} {
		if row := e.row(id); row.Parent != e.row(parent).Seq {
			t.Errorf("%s has the parent %d; want %q", id, row.Parent, parent)
		}
	}
	e.ask("editor", "circle", "editor")
	if row := e.await("circle", task.Done); row.Kind != envelope.DelegationCycle {
		t.Errorf("circle ends %s (%s); want a cycle", row.Status, row.Kind)
	}
	words["clerk"] <- 30
	close(words["clerk"])
	e.await("child", task.Done)
	runs, err := e.parts.Ledger.Runs(t.Context(), e.row("first").Seq)
	if e.must(err); *runs[0].Reserved.Tokens != 70 {
		t.Errorf("first may spend %d tokens; want what its child has left of 100", *runs[0].Reserved.Tokens)
	}
	e.append("editor", "late", "quick")
	e.must(e.submit("first", l.Token, "done"))
	e.Look(t.Context())
	if row := e.row("late"); row.Parent != e.row("first").Seq {
		t.Errorf("late has the parent %d; want first, for it was written before that was answered", row.Parent)
	}
	e.Look(t.Context())
	e.ask("editor", "after", "quick")
	if row := e.row("after"); row.Parent != 0 {
		t.Errorf("after has the parent %d; want none", row.Parent)
	}
}
