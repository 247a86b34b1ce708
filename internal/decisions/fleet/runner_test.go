package fleet

import (
	"testing"
	"time"
)

func TestARunnerObeysTheNewestOwnerAlone(t *testing.T) {
	now := Clock{Boot: time.Hour, Wall: time.Unix(1000, 0)}
	r, _ := NewRunner("s", 4, nil)
	claim := r.Claim(now, r.Report(now), "c", 1, nil)
	job := Job{Token: aToken}
	old := Reply{Epoch: 3, Session: "s", Number: claim.Number, Claim: "c", Lease: time.Minute, Jobs: []Job{job}}
	if steps := r.Reply(now, old); len(steps) > 0 {
		t.Errorf("obeyed an owner that was replaced: %+v", steps)
	}
	old.Epoch = 5
	if steps := r.Reply(now, old); len(steps) != 2 || steps[0].Epoch != 5 || steps[1].State != Offered {
		t.Errorf("steps %+v", steps)
	}
}

func TestALateJobIsNotTaken(t *testing.T) {
	now := Clock{Boot: time.Hour}
	r, _ := NewRunner("s", 1, nil)
	claim := r.Claim(now, r.Report(now), "c", 1, nil)
	now.Boot += ClaimWait + time.Millisecond
	reply := Reply{Epoch: 1, Session: "s", Number: claim.Number, Claim: "c", Lease: time.Minute, Jobs: []Job{{Token: aToken}}}
	if steps := r.Reply(now, reply); len(steps) > 0 {
		t.Errorf("took a job after %s: %+v", ClaimWait, steps)
	}
}

func TestAJobOfAPendingClaimIsTakenAfterManyOtherReports(t *testing.T) {
	now := Clock{Boot: time.Hour}
	r, _ := NewRunner("s", 1, nil)
	claim := r.Claim(now, r.Report(now), "c", 1, nil)
	for range 2 * sentReports {
		r.Report(now) // of an outcome
	}
	now.Boot += ClaimWait
	reply := Reply{Epoch: 1, Session: "s", Number: claim.Number, Claim: "c", Lease: time.Minute, Jobs: []Job{{Token: aToken}}}
	if steps := r.Reply(now, reply); len(steps) != 1 || steps[0].State != Offered {
		t.Errorf("steps %+v; want that the job is taken", steps)
	}
}

func TestARunEndsAtItsDeadlineByTheClockThatIsFirst(t *testing.T) {
	for name, job := range map[string]Job{
		"as a duration": {Token: aToken, Remaining: 20 * time.Second, Deadline: time.Unix(2000, 0)},
		"as a time":     {Token: aToken, Remaining: time.Hour, Deadline: time.Unix(1020, 0)},
	} {
		now := Clock{Boot: time.Hour, Wall: time.Unix(1000, 0)}
		r, _ := NewRunner("s", 1, nil)
		claim := r.Claim(now, r.Report(now), "c", 1, nil)
		r.Reply(now, Reply{Epoch: 1, Session: "s", Number: claim.Number, Claim: "c", Lease: time.Minute, Jobs: []Job{job}})
		r.Wrote(now, aToken, Offered)
		if steps := r.Wrote(now, aToken, Began); len(steps) != 1 || steps[0].Kind != StepStart {
			t.Fatalf("%s: steps %+v", name, steps)
		}
		now.Boot, now.Wall = now.Boot+20*time.Second, now.Wall.Add(20*time.Second)
		if steps := r.Tick(now); len(steps) != 1 || steps[0].Kind != StepEnd {
			t.Errorf("%s: steps %+v at the deadline", name, steps)
		}
	}
}

func TestAnIdleRunnerSendsOneMessageInTenSeconds(t *testing.T) {
	w := &world{rand: newRand(1)}
	w.owner = newSimOwner(w)
	w.now = faultTime // no faults
	m := newMachine(w, "r0")
	w.machines = append(w.machines, m)
	sent := func(until time.Duration) int {
		w.run(func() bool { return w.now >= until })
		return m.messages
	}
	before := sent(faultTime + 20*time.Second)
	if n := sent(faultTime+20*time.Second+1000*time.Second) - before; n > 100 || n < 90 {
		t.Errorf("an idle runner sent %d messages in 1,000 seconds", n)
	}
}

func TestAnOfferIsExtendedWhileItsJobIsFetched(t *testing.T) {
	now := Clock{Boot: time.Hour}
	r, _ := NewRunner("s", 1, nil)
	claim := r.Claim(now, r.Report(now), "c", 1, nil)
	r.Reply(now, Reply{Epoch: 1, Session: "s", Number: claim.Number, Claim: "c", Lease: time.Minute, Jobs: []Job{{Token: aToken}}})
	r.Keeps(aToken)
	now.Boot += 50 * time.Second
	m := r.Report(now)
	if len(m.Runs) != 1 || m.Runs[0].State != Offered {
		t.Fatalf("report %+v", m)
	}
	r.Reply(now, Reply{Epoch: 1, Session: "s", Number: m.Number, Lease: time.Minute, Renew: []Token{aToken}})
	now.Boot += 50 * time.Second
	if steps := r.Wrote(now, aToken, Offered); len(steps) != 1 || steps[0].State != Began {
		t.Errorf("after 100 seconds: %+v", steps)
	}
}
