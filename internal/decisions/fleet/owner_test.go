package fleet

import (
	"strings"
	"testing"
	"time"
)

// pair is an owner and what its runner sends.
type pair struct {
	t   *testing.T
	o   *Owner
	now time.Time
	m   Report
}

const aToken = Token("1-1-1-1-x")

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{t: t, now: time.Unix(1000, 0)}
	past := map[Token]Past{"1-9-1-1-settled": PastSettled, "1-9-1-1-closed": PastClosed, "1-9-1-1-fenced": PastFenced}
	p.o = NewOwner(3, Options{Past: func(t Token, runner string) Past {
		if runner != "gpu" {
			return PastUnknown
		}
		return past[t]
	}})
	p.m = Report{Protocol: Protocol, Runner: "gpu", Incarnation: "i", Session: "s", Journal: 5}
	if reply, duties := p.hello(nil); reply.Refused != "" || reply.Drain != "" || len(duties) > 0 {
		t.Fatalf("first hello: %+v, %+v", reply, duties)
	}
	return p
}

// next returns the next report, changed.
func (p *pair) next(change func(*Report)) Report {
	p.now = p.now.Add(time.Second)
	p.m.Number++
	p.m.Time = p.now
	m := p.m
	if change != nil {
		change(&m)
	}
	return m
}

func (p *pair) hello(change func(*Report)) (Reply, []Duty) {
	offers := Announcement{Slots: 2, Agents: []Agent{{ID: "a", Idempotent: true}, {ID: "b"}}}
	return p.o.Hello(p.now, Hello{p.next(change), offers})
}

func (p *pair) beat(change func(*Report)) (Reply, []Duty) {
	return p.o.Beat(p.now, Beat{p.next(change)})
}

// assign gives a token of an agent to the runner through a claim.
func (p *pair) assign(token Token, agent string, t Terms) []Duty {
	p.t.Helper()
	_, answered, _ := p.o.Claim(p.now, Claim{Report: p.next(nil), ID: "c", Free: 1, By: map[string]int{agent: 1}})
	_, ok := p.o.Assign(p.now, token, agent, t, func(Known, Agent) bool { return true })
	if answered || !ok {
		p.t.Fatalf("claim was answered at once: %t, assigned: %t", answered, ok)
	}
	return p.o.Send(p.now, Job{Token: token, Agent: agent})
}

func (p *pair) state() State { return p.o.States(p.now)[0] }

func kinds(duties []Duty) string {
	var all []string
	for _, d := range duties {
		all = append(all, string(d.Kind))
	}
	return strings.Join(all, " ")
}

func TestARunnerThatIsNotTheKnownOneIsUnavailableWithTheReason(t *testing.T) {
	begin := func(session string, journal int64) func(*Report) {
		return func(m *Report) { m.Session, m.Journal, m.Number = session, journal, 1 }
	}
	for name, c := range map[string]struct {
		silent time.Duration // of the known one before
		change func(*Report)
		want   string
	}{
		"its state is lost":            {2 * time.Minute, func(m *Report) { m.Incarnation, m.Session = "j", "s2" }, "state was lost"},
		"another has its name":         {0, func(m *Report) { m.Incarnation, m.Session = "j", "s2" }, "two runners have this name"},
		"its state is rolled back":     {2 * time.Minute, begin("s2", 4), "rolled back"},
		"a copy of its state runs too": {0, begin("s2", 5), "two runners have this name"},
	} {
		p := newPair(t)
		p.now = p.now.Add(c.silent)
		reply, duties := p.hello(c.change)
		s := p.state()
		if reply.Refused == "" || kinds(duties) != "refused" || s.Status != Unavailable || !strings.Contains(s.Reason, c.want) || s.Next == "" {
			t.Errorf("%s: reply %+v, duties %s, state %s: %s; %s", name, reply, kinds(duties), s.Status, s.Reason, s.Next)
		}
		if _, duties := p.hello(c.change); len(duties) > 0 {
			t.Errorf("%s: the second hello has duties %s", name, kinds(duties))
		}
		p.o.Remove(p.now, "gpu")
		if reply, _ := p.hello(c.change); reply.Refused != "" {
			t.Errorf("%s: after Remove: %s", name, reply.Refused)
		}
	}
}

func TestANewSessionOfTheSameStateIsServed(t *testing.T) {
	p := newPair(t)
	if reply, _ := p.hello(func(m *Report) { m.Session, m.Journal, m.Number = "s2", 6, 1 }); reply.Refused != "" {
		t.Errorf("refused: %s", reply.Refused)
	}
	if reply, _ := p.beat(nil); reply.Refused == "" {
		t.Error("the session before is served too")
	}
}

func TestARunnerGetsNoJobsWhileItMayNot(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Report)
		want   string
	}{
		"an older protocol": {func(m *Report) { m.Protocol = 0 }, "install the same version"},
		"a newer protocol":  {func(m *Report) { m.Protocol = Protocol + 1 }, "install the same version"},
		"a wrong clock":     {func(m *Report) { m.Time = m.Time.Add(time.Hour) }, "clock differs by 1h0m0s"},
		"a full disk":       {func(m *Report) { m.DiskFull = "disk full at /var" }, "disk full"},
	} {
		p := newPair(t)
		claim := func(change func(*Report)) (Reply, bool) {
			reply, answered, _ := p.o.Claim(p.now, Claim{Report: p.next(change), ID: "c", Free: 1, By: map[string]int{"a": 1}})
			return reply, answered
		}
		if reply, answered := claim(c.change); !answered || !strings.Contains(reply.Drain, c.want) || p.state().Status != Unavailable {
			t.Errorf("%s: answered %t, drain %q, status %s", name, answered, reply.Drain, p.state().Status)
		}
		if _, answered := claim(nil); answered || p.state().Status != Ready {
			t.Errorf("%s: status %s after it is right again", name, p.state().Status)
		}
	}
}

func TestADrainedRunnerEndsItsRunsAndGetsNoOthers(t *testing.T) {
	p := newPair(t)
	p.assign(aToken, "b", Terms{})
	if duties := p.o.Send(p.now, Job{Token: aToken, Agent: "b"}); len(duties) > 0 {
		t.Errorf("a job that was sent is sent again, or voided: %s", kinds(duties))
	}
	p.o.Claim(p.now, Claim{Report: p.next(nil), ID: "c2", Free: 1, By: map[string]int{"b": 1}})
	if duties, ok := p.o.Drain(p.now, "gpu", true); !ok || kinds(duties) != "answer" || duties[0].Reply.Drain == "" {
		t.Errorf("drain: %t, %+v", ok, duties)
	}
	reply, _ := p.beat(func(m *Report) { m.Runs = []RunReport{{Token: aToken, State: Began}} })
	if len(reply.Renew) != 1 || p.state().Status != Draining {
		t.Errorf("its run isn't renewed: %+v, status %s", reply, p.state().Status)
	}
}

func TestAJobThatDoesNotArriveIsVoided(t *testing.T) {
	p := newPair(t)
	if duties := p.assign(aToken, "b", Terms{}); kinds(duties) != "answer" || len(duties[0].Reply.Jobs) != 1 {
		t.Fatalf("duties %+v", duties)
	}
	if reply, _ := p.beat(nil); len(reply.Void) > 0 {
		t.Error("voided at once")
	}
	p.now = p.now.Add(VoidAfter)
	if reply, _ := p.beat(nil); len(reply.Void) != 1 {
		t.Error("not voided after 30 seconds")
	}
	reply, duties := p.beat(func(m *Report) { m.Voided = []Token{aToken} })
	if kinds(duties) != "voided" || len(reply.Settled) != 1 {
		t.Errorf("tombstone: duties %s, reply %+v", kinds(duties), reply)
	}
	if ruling, reply := p.o.Done(Done{Report: p.next(nil), Token: aToken}); ruling == RuleCommit {
		t.Errorf("the outcome of a voided token is committed: %+v", reply)
	}
}

func TestAJobWhoseClaimWasAnsweredMeanwhileIsVoidedAtOnce(t *testing.T) {
	p := newPair(t)
	p.o.Claim(p.now, Claim{Report: p.next(nil), ID: "c", Free: 1, By: map[string]int{"a": 1}})
	p.o.Assign(p.now, aToken, "a", Terms{}, func(Known, Agent) bool { return true })
	p.now = p.now.Add(ClaimWait)
	if duties := p.o.Tick(p.now); kinds(duties) != "answer" || len(duties[0].Reply.Jobs) > 0 {
		t.Fatalf("duties %+v at the end of the claim", duties)
	}
	if duties := p.o.Send(p.now, Job{Token: aToken, Agent: "a"}); kinds(duties) != "voided" {
		t.Errorf("duties %s; no runner has the job", kinds(duties))
	}
	if _, open := p.o.Assigned(aToken); open {
		t.Error("the assignment is open still")
	}
}

func TestALeaseThatEndsRepeatsIdempotentRunsAlone(t *testing.T) {
	p := newPair(t)
	p.assign("1-1-1-1-x", "a", Terms{Idempotent: true})
	p.assign("1-2-1-1-x", "b", Terms{Idempotent: true}) // the runner doesn't say so of agent b
	p.assign("1-3-1-1-x", "a", Terms{})
	p.beat(func(m *Report) {
		m.Runs = []RunReport{{Token: "1-1-1-1-x", State: Began}, {Token: "1-2-1-1-x", State: Began}, {Token: "1-3-1-1-x", State: Began}}
	})
	p.now = p.now.Add(time.Minute + Margin(time.Minute))
	if duties := p.o.Tick(p.now); kinds(duties) != "repeat unreachable unreachable" {
		t.Errorf("duties %s", kinds(duties))
	}
	_, duties := p.beat(func(m *Report) {
		m.Runs = []RunReport{{Token: "1-2-1-1-x", State: Began}, {Token: "1-3-1-1-x", State: Ended}}
	})
	if kinds(duties) != "reached reached" {
		t.Errorf("duties when it is back: %s", kinds(duties))
	}
	p.now = p.now.Add(time.Minute + Margin(time.Minute))
	if duties := p.o.Tick(p.now); kinds(duties) != "unreachable unreachable" {
		t.Errorf("duties when it is away again: %s", kinds(duties))
	}
	p.now = p.now.Add(24 * time.Hour)
	if duties := p.o.Tick(p.now); kinds(duties) != "lost lost" {
		t.Errorf("duties after a day: %s", kinds(duties))
	}
}

// The ledger may have it as one that can't be reached.
func TestARunOfAnEarlierOwnerIsReachedWhenItsRunnerReportsIt(t *testing.T) {
	p := newPair(t)
	p.o.Restore(p.now, Assignment{Token: aToken, Runner: "gpu", Incarnation: "i", Agent: "b"})
	listed := func(m *Report) { m.Runs = []RunReport{{Token: aToken, State: Began}} }
	for _, want := range []string{"reached", ""} {
		if _, duties := p.beat(listed); kinds(duties) != want {
			t.Errorf("duties %q; want %q", kinds(duties), want)
		}
	}
}

func TestOutcomesAreCommittedOnceOrFenced(t *testing.T) {
	p := newPair(t)
	p.assign(aToken, "b", Terms{})
	of := func(runner string, token Token) Done {
		m := p.next(nil)
		m.Runner = runner
		return Done{Report: m, Token: token}
	}
	if ruling, reply := p.o.Done(of("cpu", aToken)); ruling != RuleAnswer || reply.Refused == "" {
		t.Errorf("the outcome of another runner: %d, %+v", ruling, reply)
	}
	if ruling, _ := p.o.Done(of("gpu", aToken)); ruling != RuleCommit {
		t.Errorf("ruling %d", ruling)
	}
	if ruling, reply := p.o.Done(of("gpu", aToken)); ruling != RuleAnswer || !reply.Later {
		t.Errorf("a second one while the first is committed: %d, %+v", ruling, reply)
	}
	if reply := p.o.Settled(aToken); !reply.Settled {
		t.Errorf("reply %+v", reply)
	}
	if ruling, reply := p.o.Done(of("cpu", "1-9-1-1-closed")); ruling != RuleAnswer || reply.Refused == "" {
		t.Errorf("the outcome of an ended run of another runner: %d, %+v", ruling, reply)
	}
	for token, want := range map[Token]Ruling{
		"1-9-1-1-settled": RuleAnswer, "1-9-1-1-closed": RuleFence, "1-9-1-1-fenced": RuleAnswer, "1-9-1-1-unknown": RuleAnswer,
	} {
		if ruling, reply := p.o.Done(of("gpu", token)); ruling != want || !reply.Settled && reply.Fenced == "" && reply.Refused == "" {
			t.Errorf("%s: %d, %+v", token, ruling, reply)
		}
	}
}

func TestALeaseDoesNotEndWhileAnOutcomeIsCommitted(t *testing.T) {
	p := newPair(t)
	p.assign(aToken, "b", Terms{})
	p.o.Done(Done{Report: p.next(nil), Token: aToken})
	p.now = p.now.Add(time.Minute + Margin(time.Minute))
	if duties := p.o.Tick(p.now); len(duties) > 0 {
		t.Errorf("duties %s", kinds(duties))
	}
	p.o.Unsettled(aToken)
	if duties := p.o.Tick(p.now); kinds(duties) != "unreachable" {
		t.Errorf("duties %s after the commit failed", kinds(duties))
	}
}

func TestAPlaceThatIsGivenBackIsThereForTheNextRun(t *testing.T) {
	p := newPair(t)
	fits := func(Known, Agent) bool { return true }
	p.o.Claim(p.now, Claim{Report: p.next(nil), ID: "c", Free: 2, By: map[string]int{"a": 2, "b": 1}})
	for _, token := range []Token{"1-1-1-1-x", "1-2-1-1-x"} {
		if _, ok := p.o.Assign(p.now, token, "a", Terms{}, fits); !ok {
			t.Fatalf("%s has no place", token)
		}
	}
	if p.o.HasRoom(p.now, "a", 0, fits) || p.o.HasRoom(p.now, "b", 0, fits) {
		t.Error("a full claim has room")
	}
	if duties := p.o.Unassign(p.now, "1-1-1-1-x"); len(duties) > 0 {
		t.Errorf("the claim was answered before its job was there: %s", kinds(duties))
	}
	if !p.o.HasRoom(p.now, "b", 0, fits) || p.o.HasRoom(p.now, "b", 1, fits) {
		t.Error("the claim has not one place")
	}
	if duties := p.o.Close(p.now); kinds(duties) != "answer" || len(duties[0].Reply.Jobs) > 0 || p.o.HasRoom(p.now, "b", 0, fits) {
		t.Errorf("close: %+v", duties)
	}
}

func TestARunnerThatTookANameIsNotAskedAboutTheRunsOfTheOneBefore(t *testing.T) {
	p := newPair(t)
	p.assign(aToken, "a", Terms{Idempotent: true})
	p.o.Remove(p.now, "gpu")
	p.hello(func(m *Report) { m.Incarnation = "j" })
	p.now = p.now.Add(VoidAfter)
	claim := Claim{Report: p.next(func(m *Report) { m.Incarnation = "j" }), ID: "c", Free: 1, By: map[string]int{"a": 1}}
	_, answered, _ := p.o.Claim(p.now, claim)
	if duties := p.o.Tick(p.now.Add(time.Second)); answered || len(duties) > 0 {
		t.Errorf("answered at once: %t, duties %s", answered, kinds(duties))
	}
}
