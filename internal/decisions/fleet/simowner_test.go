package fleet

import (
	"fmt"
	"slices"
	"time"
)

// simOwner is the owner: the state machine while its process lives, and the ledger, which is durable.
type simOwner struct {
	w       *world
	fleet   *Owner // nil: the process is dead
	life    int    // of the process, so that work of an earlier one stops
	epoch   int64
	ledger  map[Token]*record
	tokens  []Token // of the ledger, the oldest first
	known   map[string]Known
	answers map[string]func(Reply) // of pending claims
}

// record is an assignment in the ledger.
type record struct {
	Assignment
	task *simTask
	open bool
	past Past
}

func newSimOwner(w *world) *simOwner {
	o := &simOwner{w: w, ledger: map[Token]*record{}, known: map[string]Known{}}
	o.start()
	return o
}

func (o *simOwner) clock() time.Time { return epochTime.Add(o.w.now) }

func (o *simOwner) start() {
	o.epoch++
	o.life++
	o.answers = map[string]func(Reply){}
	o.fleet = NewOwner(o.epoch, Options{Lease: simLease, Unreachable: simLost, Past: func(t Token, _ string) Past {
		if r := o.ledger[t]; r != nil {
			return r.past
		}
		return PastUnknown
	}})
	o.fleet.broken = o.w.broken
	for _, m := range o.w.machines {
		if k, ok := o.known[m.name]; ok {
			o.fleet.Know(k)
		}
	}
	for _, t := range o.tokens {
		if r := o.ledger[t]; r.open {
			o.fleet.Restore(o.clock(), r.Assignment)
		}
	}
	o.tick(o.life)
}

// stop kills the process, and starts it again later.
func (o *simOwner) stop() {
	if o.fleet == nil {
		return
	}
	o.fleet = nil
	o.w.after(o.w.between(0, 60*time.Second), o.start)
}

// crash kills the process at a step, now and then.
func (o *simOwner) crash() bool {
	if o.w.troubled() && o.w.rand.IntN(300) == 0 {
		o.stop()
	}
	return o.fleet == nil
}

func (o *simOwner) tick(life int) {
	if o.fleet == nil || o.life != life {
		return
	}
	duties := o.fleet.Tick(o.clock())
	for _, r := range o.fleet.runs {
		if left := o.fleet.check(o.clock(), r); len(left) > 0 {
			o.w.fault("Tick left %+v", left)
		}
	}
	o.do(duties)
	o.dispatch()
	o.w.after(time.Second, func() { o.tick(life) })
}

// do carries out duties: what changes the ledger is one commit.
func (o *simOwner) do(duties []Duty) {
	for _, d := range duties {
		if o.crash() {
			return
		}
		r := o.ledger[d.Token]
		switch d.Kind {
		case DutyAnswer:
			if answer := o.answers[d.Claim]; answer != nil {
				delete(o.answers, d.Claim)
				answer(d.Reply)
			}
		case DutyVoided:
			o.w.voided++
			r.close(PastClosed, "queued")
		case DutyRepeat:
			o.w.repeated++
			r.close(PastClosed, "queued")
		case DutyLost:
			if o.w.lost++; !o.machine(d.Runner).vanished {
				o.w.fault("task %d is lost, and its machine is not: %s", r.task.number, d.Why)
			}
			r.close(PastClosed, "lost")
		}
	}
	o.crash()
}

func (o *simOwner) machine(name string) *machine {
	return o.w.machines[slices.IndexFunc(o.w.machines, func(m *machine) bool { return m.name == name })]
}

// close ends an assignment in the ledger, unless it has ended.
func (r *record) close(past Past, state string) {
	if r.open {
		r.open, r.past, r.task.state = false, past, state
	}
}

// dispatch assigns queued tasks.
func (o *simOwner) dispatch() {
	fits := func(Known, Agent) bool { return true }
	for _, t := range o.w.tasks {
		if o.fleet == nil || t.state != "queued" {
			continue
		}
		token := NewToken(o.epoch, int64(t.number), 1, t.attempt+1, fmt.Sprint(len(o.tokens)))
		a, ok := o.fleet.Assign(o.clock(), token, "a", Terms{Idempotent: t.idempotent}, fits)
		if !ok || o.crash() {
			continue
		}
		if o.w.chance(3) {
			o.do(o.fleet.Unassign(o.clock(), token))
			continue
		}
		t.attempt++
		t.state = "running"
		o.ledger[token], o.tokens = &record{Assignment: a, task: t, open: true}, append(o.tokens, token)
		if o.crash() {
			return
		}
		job, delay, life := Job{Token: token, Agent: "a", Idempotent: a.Idempotent}, time.Duration(0), o.life
		if o.w.troubled() && o.w.chance(5) {
			delay = o.w.between(0, 15*time.Second)
		}
		o.w.after(delay, func() {
			if o.fleet != nil && o.life == life {
				o.do(o.fleet.Send(o.clock(), job))
			}
		})
	}
}

// receive takes a message of a machine.
func (o *simOwner) receive(m *machine, message any, answer func(Reply), done func(DoneReply)) {
	if o.fleet == nil {
		return
	}
	switch message := message.(type) {
	case Hello:
		reply, duties := o.fleet.Hello(o.clock(), message)
		for _, s := range o.fleet.States(o.clock()) {
			o.known[s.Runner] = s.Known
		}
		o.reply(duties, func() { answer(reply) })
	case Beat:
		reply, duties := o.fleet.Beat(o.clock(), message)
		o.reply(duties, func() { answer(reply) })
	case Claim:
		o.answers[message.ID] = answer
		reply, answered, duties := o.fleet.Claim(o.clock(), message)
		o.reply(duties, func() {
			if answered {
				answer(reply)
			}
		})
	case Done:
		o.done(m, message, done)
	}
	o.dispatch()
}

func (o *simOwner) reply(duties []Duty, answer func()) {
	if o.do(duties); o.fleet != nil {
		answer()
	}
}

// done commits an outcome, or keeps it for review.
func (o *simOwner) done(m *machine, message Done, answer func(DoneReply)) {
	ruling, reply := o.fleet.Done(message)
	life, r := o.life, o.ledger[message.Token]
	switch ruling {
	case RuleFence:
		o.w.fenced++
		r.past = PastFenced
		answer(reply)
	case RuleAnswer:
		answer(reply)
	case RuleCommit:
		o.w.after(o.w.between(0, 100*time.Millisecond), func() {
			if o.fleet == nil || o.life != life || o.crash() {
				return
			}
			if o.w.chance(2) {
				answer(o.fleet.Unsettled(message.Token))
				return
			}
			r.close(PastSettled, m.endOf(string(message.Outcome), r))
			if !o.crash() {
				answer(o.fleet.Settled(message.Token))
			}
		})
	}
}

// endOf returns the state of a task after the outcome of its run: an interrupted one of an idempotent agent is
// followed by another attempt.
func (m *machine) endOf(outcome string, r *record) string {
	switch {
	case outcome == "ok":
		return "done"
	case r.Idempotent:
		return "queued"
	case outcome != "lost":
		m.w.fault("task %d was ended although it isn't idempotent", r.task.number)
	}
	m.w.lost++
	return "lost"
}
