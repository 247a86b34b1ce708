package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mailboxd/dispatch"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/ledger"
	"mailboxd/internal/runner"
	"mailboxd/mailbox"
)

// A part is what an agent does at one of its runs, in order over all its tasks;
// the last one is repeated.
type part func(j dispatch.Job) dispatch.Outcome

// A stage is an engine whose agents speak CAP, each with its parts.
type stage struct {
	*engine
	overseers map[string]string
	allowed   map[string][]string // whom an agent may hand work to; nil: anybody
	mend      map[string]dispatch.Mend

	mu   sync.Mutex // guards jobs
	jobs []dispatch.Job
}

func newStage(t *testing.T) *stage {
	s := &stage{engine: newEngine(t), overseers: map[string]string{}, allowed: map[string][]string{}, mend: map[string]dispatch.Mend{}}
	s.mode = envelope.Enforce
	s.retries = 0
	s.opts.Depth = 5
	s.spoken = dispatch.Protocol{
		Dialect:  func(string) envelope.Dialect { return envelope.CAP },
		Overseer: func(agent string) string { return s.overseers[agent] },
		MayDelegate: func(from, to string) string {
			if may := s.allowed[from]; may != nil && !slices.Contains(may, to) {
				return from + " may not hand work to " + to
			}
			return ""
		},
		Mend:      func(agent string, _ envelope.Kind) dispatch.Mend { return s.mend[agent] },
		Takers:    func(string, map[string][]string) []string { return nil },
		Supports:  func(string) []string { return nil },
		Agents:    func() []string { return nil },
		Secret:    func(string) string { return "" },
		Rounds:    2,
		Broadcast: 16,
	}
	return s
}

// cast gives an agent its parts.
func (s *stage) cast(agent string, parts ...part) {
	at := 0
	s.plays[agent] = func(_ context.Context, j dispatch.Job) dispatch.Outcome {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.jobs = append(s.jobs, j)
		now := parts[min(at, len(parts)-1)]
		at++
		o := now(j)
		o.Exit.Started, o.Exit.Finished = time.Now(), time.Now()
		return o
	}
}

// runs returns the jobs that an agent had.
func (s *stage) runs(agent string) (jobs []dispatch.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.Task.Agent == agent {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// line appends a line to the task files, and has it taken in.
func (s *stage) line(text string) {
	s.t.Helper()
	_, _, err := mailbox.Append(s.parts.Box.Path(), []byte(text))
	s.must(err)
	s.Look(s.t.Context())
	s.must(s.Idle(s.t.Context()))
}

// order has orchestrator ask an agent for something in CAP.
func (s *stage) order(id, agent string) {
	s.t.Helper()
	s.line(notice("orchestrator", id, agent, "look at "+id))
}

func notice(from, id, to, words string) string {
	return fmt.Sprintf(`{"type":"delegation_notice","task_id":%q,"sender_id":%q,"recipient_id":%q,"context_summary":%q,"attachments":[]}`, id, from, to, words)
}

func message(from, id, to, words string) string {
	return fmt.Sprintf(`{"type":"message","task_id":%q,"sender_id":%q,"recipient_id":%q,"content":%q}`, id, from, to, words)
}

func question(from, id, to, words string) string {
	return strings.TrimSuffix(message(from, id, to, words), "}") + `,"expects_reply":true}`
}

func inquiry(from, id, to, words string) string {
	return fmt.Sprintf(`{"type":"oversight_inquiry","task_id":%q,"sender_id":%q,"recipient_id":%q,"inquiry":%q}`, id, from, to, words)
}

func refusal(from, id, to, words string) string {
	return fmt.Sprintf(`{"type":"error_response","task_id":%q,"sender_id":%q,"recipient_id":%q,"error_code":403,"error_message":%q}`, id, from, to, words)
}

// answers is a part that answers its task.
func answers(words string) part {
	return func(j dispatch.Job) dispatch.Outcome { return answer(j, words) }
}

// fails is a part that fails with a kind.
func fails(kind envelope.Kind) part {
	return func(j dispatch.Job) dispatch.Outcome {
		o := answer(j, "")
		o.Result.Status, o.Result.Error = envelope.Failed, envelope.Error{Kind: kind, Message: "no luck"}
		return o
	}
}

// says is a part that says lines of CAP, and waits for something; "" answers too.
func says(hold ledger.Reason, lines ...string) part {
	return func(j dispatch.Job) dispatch.Outcome {
		o := answer(j, "said")
		if o.Hold = hold; hold != "" {
			o.Result = envelope.Result{}
		}
		o.Said = spoken(j, lines...)
		return o
	}
}

func spoken(j dispatch.Job, lines ...string) (said []envelope.Message) {
	codec, _ := dialect.Of(envelope.CAP)
	for _, line := range lines {
		m, findings := codec.Hear([]byte(line), j.Task)
		if findings.Refused() {
			panic(findings.String())
		}
		said = append(said, m)
	}
	return said
}

// tied is a part that hands work on in CAP with a tie that CAP has no word for.
func tied(tie envelope.Tie, line string) part {
	return func(j dispatch.Job) dispatch.Outcome {
		o := says(ledger.Children, line)(j)
		o.Said[0].Tie = tie
		return o
	}
}

// heard is what a conversation says, one line for each message.
func heard(j dispatch.Job) (lines []string) {
	for _, m := range j.Conversation {
		lines = append(lines, fmt.Sprintf("%s %s>%s %s", m.Act, m.From, strings.Join(m.To, ","), m.Text))
	}
	return lines
}

// wantEnd fails the test when a task has not ended so.
func (s *stage) wantEnd(id string, status envelope.Status, kind envelope.Kind) {
	s.t.Helper()
	if row := s.row(id); row.State != ledger.Done || row.Status != status || row.Kind != kind {
		kinds, data := s.story(id)
		s.t.Errorf("%s is %s %v, %s (%s); want done, %s (%s)\n%v %s", id, row.State, row.Reasons, row.Status, row.Kind, status, kind, kinds, data)
	}
}

// CAP-19, CLOWL-33.
func TestAnAgentGoesOnWithTheAnswerOfTheOneItAsked(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(ledger.Children, notice("pm", "T1.1", "analyst", "count them")), answers("all counted"))
	s.cast("analyst", answers("42"))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1.1", envelope.OK, "")
	s.wantEnd("T1", envelope.OK, "")
	s.wantResult("T1", "all counted")
	if child := s.row("T1.1"); child.Parent != s.row("T1").Seq || child.Requester != "pm" {
		t.Errorf("T1.1 = %+v; want a child of T1 that pm asked for", child)
	}
	runs := s.runs("pm")
	if len(runs) != 2 {
		t.Fatalf("pm ran %d times; want 2", len(runs))
	}
	got, want := heard(runs[1]), []string{"task.delegated pm>analyst count them", "task.completed analyst>pm 42, revision 1"}
	if !slices.Equal(got, want) {
		t.Errorf("pm goes on with %q; want %q", got, want)
	}
	if conversation := heard(s.runs("analyst")[0]); len(conversation) > 0 {
		t.Errorf("analyst begins with %q; want nothing but its request", conversation)
	}
}

// CLOWL-31.
func TestWhatIsHandedOverEntirelyAnswersForItself(t *testing.T) {
	for name, part := range map[string]part{"ok": answers("found"), "error": fails(envelope.AgentError)} {
		t.Run("CLOWL-31 "+name, func(t *testing.T) {
			s := newStage(t)
			s.cast("pm", tied(envelope.Transfer, notice("pm", "T1.1", "analyst", "do it all")))
			s.cast("analyst", part)
			s.start()
			s.order("T1", "pm")
			child := s.row("T1.1")
			s.wantEnd("T1", child.Status, child.Kind)
			s.wantResult("T1", `"agent_id": "analyst"`, `"task_id": "T1"`, `"mbx.answered_as": "T1.1"`)
			if len(s.runs("pm")) != 1 {
				t.Errorf("pm ran %d times; want once", len(s.runs("pm")))
			}
		})
	}
}

// CLOWL-32.
func TestAForkIsOnItsOwn(t *testing.T) {
	s := newStage(t)
	s.cast("pm", func(j dispatch.Job) dispatch.Outcome {
		o := answer(j, "mine")
		o.Said = spoken(j, notice("pm", "T1.1", "analyst", "as well"))
		return o
	})
	s.cast("analyst", fails(envelope.AgentError))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1", envelope.OK, "")
	s.wantEnd("T1.1", envelope.Failed, envelope.AgentError)
	if len(s.runs("pm")) != 1 {
		t.Errorf("pm ran %d times; want once, for a fork concerns it no more", len(s.runs("pm")))
	}
}

// CAP-29.
func TestAnAgentGoesOnWithTheReplyOfAPerson(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(ledger.Reply, question("pm", "T1", "user", "which region?")), answers("done so"))
	s.start()
	s.order("T1", "pm")
	s.wantHeld("T1", ledger.Reply)
	if got := s.letters("user"); len(got) != 1 || !strings.Contains(got[0], "which region?") {
		t.Errorf("user finds %q; want the question", got)
	}
	s.line(message("user", "T1", "pm", "the north"))
	s.wantEnd("T1", envelope.OK, "")
	got, want := heard(s.runs("pm")[1]), []string{"info pm>user which region?", "info user>pm the north"}
	if !slices.Equal(got, want) {
		t.Errorf("pm goes on with %q; want %q", got, want)
	}
}

// A reply that comes while the agent still speaks is one all the same.
func TestAReplyThatCameBeforeTheTaskWaitsForItIsNotMissed(t *testing.T) {
	s := newStage(t)
	s.cast("pm", func(j dispatch.Job) dispatch.Outcome {
		_, _, err := mailbox.Append(s.parts.Box.Path(), []byte(message("user", "T1", "pm", "the north")))
		s.must(err)
		s.Look(s.t.Context())
		return says(ledger.Reply, question("pm", "T1", "user", "which region?"))(j)
	}, answers("done so"))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1", envelope.OK, "")
}

// CAP-29.
func TestAQuestionToTheOneAboveIsAnsweredByItsRun(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(ledger.Children, notice("pm", "T1.1", "analyst", "count them")),
		says(ledger.Reply, message("pm", "T1.1", "analyst", "yes, all")), answers("all counted"))
	s.cast("analyst", says(ledger.Reply, question("analyst", "T1.1", "pm", "all of them?")), answers("42"))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1", envelope.OK, "")
	got, want := heard(s.runs("analyst")[1]), []string{"info analyst>pm all of them?", "info pm>analyst yes, all"}
	if !slices.Equal(got, want) {
		t.Errorf("analyst goes on with %q; want %q", got, want)
	}
	if len(s.runs("pm")) != 3 {
		t.Errorf("pm ran %d times; want 3", len(s.runs("pm")))
	}
}

// CAP-19.
func TestWorkIsHandedOnlyToWhomItMayBe(t *testing.T) {
	s := newStage(t)
	s.allowed["pm"] = []string{"analyst"}
	s.cast("pm", says(ledger.Children, notice("pm", "T1.1", "qa", "check it")), answers("then not"))
	s.cast("qa", answers("never"))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1.1", envelope.Rejected, envelope.DelegationDenied)
	s.wantEnd("T1", envelope.OK, "")
	if len(s.runs("qa")) != 0 {
		t.Error("qa ran; want it never asked")
	}
	if got := heard(s.runs("pm")[1]); !strings.Contains(strings.Join(got, "\n"), "task.failed qa>pm target_agent: pm may not hand work to qa") &&
		!strings.Contains(strings.Join(got, "\n"), "may not hand work to qa") {
		t.Errorf("pm goes on with %q; want to hear that it may not", got)
	}
}

// CLOWL-35.
func TestWorkThatGoesRoundInACircleEnds(t *testing.T) {
	s := newStage(t)
	s.cast("a", tied(envelope.Transfer, notice("a", "T1.1", "b", "yours")))
	s.cast("b", tied(envelope.Transfer, notice("b", "T1.1.1", "c", "yours")))
	s.cast("c", tied(envelope.Transfer, notice("c", "T1.1.1.1", "a", "yours")))
	s.start()
	s.order("T1", "a")
	s.wantEnd("T1.1.1.1", envelope.Rejected, envelope.DelegationCycle)
	for _, id := range []string{"T1.1.1", "T1.1", "T1"} {
		s.wantEnd(id, envelope.Failed, envelope.DelegationCycle)
	}
}

func TestWhatEndsATaskEndsWhatIsBelowIt(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(ledger.Children, notice("pm", "T1.1", "analyst", "count them"), notice("pm", "T1.2", "slow", "wait")))
	s.cast("analyst", says(ledger.Reply, question("analyst", "T1.1", "user", "all of them?")))
	s.start()
	_, _, err := mailbox.Append(s.parts.Box.Path(), []byte(notice("orchestrator", "T1", "pm", "look")))
	s.must(err)
	s.Look(t.Context())
	s.await("T1.2", ledger.Running)
	s.await("T1.1", ledger.Held)
	s.must(s.Cancel(t.Context(), "T1", dispatch.By{Who: "uid 1000"}))
	s.must(s.Idle(t.Context()))
	for _, id := range []string{"T1", "T1.1", "T1.2"} {
		s.wantEnd(id, envelope.Stopped, envelope.Cancelled)
	}
}

func TestNobodyReplyingInTimeIsATimeout(t *testing.T) {
	s := newStage(t)
	s.spoken.Patience = time.Millisecond
	s.cast("pm", says(ledger.Reply, question("pm", "T1", "user", "which region?")))
	s.start()
	s.order("T1", "pm")
	s.await("T1", ledger.Done)
	s.wantEnd("T1", envelope.Failed, envelope.Timeout)
}

func TestAnAgentThatOnlyEverSpeaksComesToAnEnd(t *testing.T) {
	s := newStage(t)
	s.allowed["pm"] = []string{}
	s.cast("pm", func(j dispatch.Job) dispatch.Outcome {
		return says(ledger.Children, notice("pm", fmt.Sprintf("T1.%d", j.Attempt), "qa", "check it"))(j)
	})
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1", envelope.Failed, envelope.PolicyViolation)
	s.wantResult("T1", "without an answer")
}

// Names that a model uses again are no names.
func TestWhatIsHandedOnUnderATakenNameGetsAnotherOne(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(ledger.Children, notice("pm", "T1", "analyst", "count"), notice("pm", "T1", "analyst", "weigh")), answers("both"))
	s.cast("analyst", answers("42"))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1.1", envelope.OK, "")
	s.wantEnd("T1.2", envelope.OK, "")
	s.wantEnd("T1", envelope.OK, "")
}

// AINL-46: a task's limit is over all its attempts and all its children.
func TestATaskThatWaitsForWordsReservesNothing(t *testing.T) {
	s := newStage(t)
	s.judge = func(task envelope.Task, _ time.Time) dispatch.Verdict {
		return dispatch.Verdict{Admit: true, Terms: ledger.Terms{Budget: tokens(100), Accounts: []ledger.Account{{Owner: "all", Limit: tokens(100)}}}}
	}
	spend := func(p part) part {
		return func(j dispatch.Job) dispatch.Outcome {
			o := p(j)
			o.Result.Cost = &envelope.Cost{Tokens: 30}
			return o
		}
	}
	s.cast("pm", spend(says(ledger.Children, notice("pm", "T1.1", "analyst", "count them"))), spend(answers("all")))
	s.cast("analyst", spend(answers("42")))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1", envelope.OK, "")
	var left ledger.Balance
	s.must(s.parts.Ledger.Update(t.Context(), func(tx *ledger.Tx) (err error) {
		left, err = tx.Balance("all", ledger.Day(time.Now()))
		return err
	}))
	if left.Spent.Tokens != 90 || left.Reserved != (envelope.Cost{}) {
		t.Errorf("the account has spent %d and reserved %+v; want 90 and nothing", left.Spent.Tokens, left.Reserved)
	}
	if allowance := s.runs("pm")[1].Allowance; allowance.Tokens == nil || *allowance.Tokens != 40 {
		t.Errorf("pm goes on with %v; want the 40 that are left", allowance)
	}
}

// AINL-48: a person agreed to exactly this already.
func TestAPersonIsNotAskedAgainWhenATaskGoesOn(t *testing.T) {
	s := newStage(t)
	s.judge = func(task envelope.Task, _ time.Time) dispatch.Verdict {
		v := dispatch.Verdict{Admit: true, Digest: "d"}
		if task.Agent == "pm" {
			v.Hold = []ledger.Reason{ledger.Approval}
		}
		return v
	}
	s.cast("pm", says(ledger.Reply, question("pm", "T1", "user", "which region?")), answers("done so"))
	s.start()
	s.order("T1", "pm")
	s.must(s.Approve(t.Context(), "T1", dispatch.Person{Names: []string{"anna"}}, ""))
	s.must(s.Idle(t.Context()))
	s.wantHeld("T1", ledger.Reply)
	s.line(message("user", "T1", "pm", "the north"))
	s.wantEnd("T1", envelope.OK, "")
	s.wantEvent("T1", "approval.asked")
}

// A crash leaves each of these as the ledger has it.
func TestWhatWasWaitedForIsFoundAtTheNextStart(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(ledger.Children, notice("pm", "T1.1", "analyst", "count them")), answers("all counted"))
	s.cast("analyst", says(ledger.Reply, question("analyst", "T1.1", "user", "all?")), answers("42"))
	s.start()
	s.order("T1", "pm")
	s.wantHeld("T1", ledger.Children)
	s.restart()
	<-s.Ready()
	s.must(s.Idle(t.Context()))
	s.wantHeld("T1", ledger.Children)
	s.wantHeld("T1.1", ledger.Reply)
	child := s.row("T1.1")
	s.end()
	s.aside(func(tx *ledger.Tx) error { // it ends, and the daemon dies before it sees to T1
		change := ledger.Change{To: ledger.Done, Status: envelope.OK, Result: envelope.Result{TaskID: "T1.1", Status: envelope.OK}.Encode()}
		if _, err := tx.Move(child.Seq, ledger.Held, child.Attempt, change); err != nil {
			return err
		}
		return tx.MarkSettled(child.Seq)
	})
	s.start()
	<-s.Ready()
	s.must(s.Idle(t.Context()))
	s.wantEnd("T1", envelope.OK, "")
}

func TestAChildWhoseParentEndedBeforeTheDaemonDiedIsStopped(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(ledger.Children, notice("pm", "T1.1", "analyst", "count them")))
	s.cast("analyst", says(ledger.Reply, question("analyst", "T1.1", "user", "all?")))
	s.start()
	s.order("T1", "pm")
	parent := s.row("T1")
	s.end()
	s.aside(func(tx *ledger.Tx) error {
		change := ledger.Change{To: ledger.Done, Status: envelope.Stopped, Result: envelope.Result{TaskID: "T1", Status: envelope.Stopped}.Encode()}
		if _, err := tx.Move(parent.Seq, ledger.Held, parent.Attempt, change); err != nil {
			return err
		}
		return tx.MarkSettled(parent.Seq)
	})
	s.start()
	<-s.Ready()
	s.await("T1.1", ledger.Done)
	s.wantEnd("T1.1", envelope.Stopped, envelope.Cancelled)
}

// aside changes the ledger while no daemon has it.
func (s *stage) aside(fn func(tx *ledger.Tx) error) {
	s.t.Helper()
	memory, _, err := ledger.Open(s.parts.State.LedgerPath())
	s.must(err)
	s.must(memory.Update(context.Background(), fn))
	s.must(memory.Close())
}

// exits is what a run looks like that came to a bad end.
func exits(code int) runner.Exit { return runner.Exit{Code: code} }

// What is handed on, and then done without, goes on by itself.
func TestAnAgentThatDoesNotWaitLeavesWhatItHandedOnAlone(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(ledger.Children, notice("pm", "T1.1", "analyst", "count them")), answers("never mind"))
	s.cast("analyst", says(ledger.Reply, question("analyst", "T1.1", "pm", "all of them?")), answers("42"))
	s.start()
	s.order("T1", "pm")
	s.wantEnd("T1", envelope.OK, "")
	s.wantHeld("T1.1", ledger.Reply)
	s.line(message("user", "T1.1", "analyst", "yes"))
	s.wantEnd("T1.1", envelope.OK, "")
}

// CLOWL-09.
func TestWhatSeveralAreAskedForIsGathered(t *testing.T) {
	for name, tt := range map[string]struct {
		b      part
		status envelope.Status
		kind   envelope.Kind
	}{
		"all":  {answers("two"), envelope.OK, ""},
		"some": {fails(envelope.AgentError), envelope.Partial, ""},
		"asked": {func(j dispatch.Job) dispatch.Outcome {
			return says(ledger.Reply, question("b", string(j.Task.ID), "user", "which?"))(j)
		}, "", ""},
	} {
		t.Run("CLOWL-09 "+name, func(t *testing.T) {
			s := newStage(t)
			s.cast("a", answers("one"))
			s.cast("b", tt.b)
			s.start()
			s.line(`{"clowl":"0.2","mid":"m1","ts":1709078400,"p":"REQ","from":"ann","to":["a","b"],"cid":"c","body":{"t":"count","d":{}}}`)
			if tt.status == "" {
				s.wantHeld("m1", ledger.Children)
				s.must(s.Cancel(t.Context(), "m1", dispatch.By{Who: "uid 1000"}))
				s.must(s.Idle(t.Context()))
				s.wantEnd("m1", envelope.Stopped, envelope.Cancelled)
				return
			}
			s.wantEnd("m1", tt.status, tt.kind)
			s.wantResult("m1", `"agent": "a"`, `"agent": "b"`, "one, revision 1")
		})
	}
}
