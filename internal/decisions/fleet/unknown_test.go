package fleet

import (
	"fmt"
	"testing"
)

// lists returns a change of a report that has it list so many runs that the ledger doesn't know, from a number on.
func lists(from, many int) func(*Report) {
	return func(m *Report) {
		for i := range many {
			m.Runs = append(m.Runs, RunReport{Token: Token(fmt.Sprintf("1-1-1-1-u%d", from+i)), State: Ended})
		}
	}
}

// count has the ledger of a pair count how often it is asked.
func (p *pair) count() *int {
	asked, past := 0, p.o.o.Past
	p.o.o.Past = func(token Token, runner string) Past {
		asked++
		return past(token, runner)
	}
	return &asked
}

func TestARunThatTheLedgerDoesNotKnowIsLookedUpAndReportedOnce(t *testing.T) {
	p := newPair(t)
	asked := p.count()
	if _, duties := p.beat(lists(0, 1)); kinds(duties) != "unknown" {
		t.Errorf("the first report has the duties %s", kinds(duties))
	}
	if _, duties := p.beat(lists(0, 1)); len(duties) > 0 || *asked != 1 {
		t.Errorf("the second report has the duties %s, and the ledger was asked %d times", kinds(duties), *asked)
	}
}

func TestARunnerWithManyRunsThatTheLedgerDoesNotKnowIsNotServed(t *testing.T) {
	p := newPair(t)
	asked := p.count()
	for i := range 4 {
		p.beat(lists(i*1000, 1000))
	}
	if s := p.state(); s.Status != Unavailable || *asked > mostUnknown {
		t.Errorf("the runner is %s: %s, and the ledger was asked %d times; want it unavailable after %d", s.Status, s.Reason, *asked, mostUnknown)
	}
}

func TestARunThatCouldNotBeLookedUpIsLookedUpAgain(t *testing.T) {
	p := newPair(t)
	past := p.o.o.Past
	p.o.o.Past = func(Token, string) Past { return PastUnread }
	listed := func(m *Report) { m.Runs = []RunReport{{Token: "1-9-1-1-settled", State: Ended}} }
	if reply, duties := p.beat(listed); len(reply.Settled)+len(reply.Cancel)+len(duties) > 0 {
		t.Errorf("the answer is %+v with the duties %s; want nothing about the run", reply, kinds(duties))
	}
	if ruling, reply := p.o.Done(Done{Report: p.next(nil), Token: "1-9-1-1-settled"}); ruling != RuleAnswer || !reply.Later {
		t.Errorf("the outcome got %d, %+v; want it later", ruling, reply)
	}
	p.o.o.Past = past
	if reply, _ := p.beat(listed); len(reply.Settled) != 1 {
		t.Errorf("the answer is %+v; want that the run is settled", reply)
	}
}

func TestARunThatTheLedgerHasOpenIsNeitherEndedNorFenced(t *testing.T) {
	p := newPair(t)
	p.o.o.Past = func(Token, string) Past { return PastOpen }
	for _, state := range []RunState{Offered, Began, Ended} {
		reply, duties := p.beat(func(m *Report) { m.Runs = []RunReport{{Token: aToken, State: state}} })
		if len(reply.Settled)+len(reply.Cancel)+len(duties) > 0 {
			t.Errorf("%s: the answer is %+v with the duties %s; want nothing about the run", state, reply, kinds(duties))
		}
	}
	if ruling, reply := p.o.Done(Done{Report: p.next(nil), Token: aToken}); ruling != RuleAnswer || !reply.Later {
		t.Errorf("the outcome got %d, %+v; want it later", ruling, reply)
	}
}
