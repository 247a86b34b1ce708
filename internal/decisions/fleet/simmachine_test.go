package fleet

import (
	"fmt"
	"time"
)

// machine is the machine of a runner: its journal and outcomes are durable, keepers with their runs outlive
// the program, and the state machine lives as long as the program.
type machine struct {
	w           *world
	name        string
	incarnation string
	journal     map[Token]Entry
	order       []Token
	changes     int64
	epoch       int64
	outcomes    map[Token]string
	keepers     map[Token]*keeper

	fleet   *Runner // nil: the program is dead
	life    int     // of the program
	claims  int
	claimed time.Duration // when the last claim was sent
	cut     time.Duration // until when the network is away
	drift   float64
	session string

	vanished bool // once
	messages int  // that it sent
}

// keeper is a run.
type keeper struct {
	task  *simTask
	lease time.Duration // on the boot clock; 0: none
	over  bool
}

func newMachine(w *world, name string) *machine {
	m := &machine{w: w, name: name, drift: 1 + (w.rand.Float64()-0.5)/50}
	m.empty()
	m.start()
	return m
}

// empty gives the machine a new state.
func (m *machine) empty() {
	m.incarnation = fmt.Sprintf("i%d", m.w.rand.Int64())
	m.journal, m.outcomes, m.keepers = map[Token]Entry{}, map[Token]string{}, map[Token]*keeper{}
	m.order, m.changes, m.epoch = nil, 0, 0
}

func (m *machine) clock() Clock {
	return Clock{Boot: time.Hour + time.Duration(float64(m.w.now)*m.drift), Wall: epochTime.Add(m.w.now)}
}

// start starts the program.
func (m *machine) start() {
	m.life++
	m.changes++
	m.session = fmt.Sprintf("s%d", m.life)
	var entries []Entry
	for _, t := range m.order {
		if e, ok := m.journal[t]; ok {
			entries = append(entries, e)
		}
	}
	var steps []Step
	m.fleet, steps = NewRunner(m.session, m.epoch, entries)
	m.fleet.broken = m.w.broken
	m.do(steps)
	m.hello(m.life)
	m.tick(m.life)
	m.beat(m.life)
}

func (m *machine) dead(life int) bool { return m.fleet == nil || m.life != life }

// stop kills the program, and starts it again later. Keepers go on.
func (m *machine) stop() {
	if m.fleet == nil {
		return
	}
	m.fleet = nil
	life := m.life
	m.w.after(m.w.between(0, 100*time.Second), func() {
		if m.life == life {
			m.start()
		}
	})
}

// reboot kills program and keepers.
func (m *machine) reboot() {
	for token, k := range m.keepers {
		m.finish(token, k, "")
	}
	m.stop()
}

// vanish loses the machine. Later a person removes it, and one with a new state has its name.
func (m *machine) vanish() {
	m.reboot()
	m.life++ // it doesn't start by itself
	m.fleet = nil
	m.empty()
	m.vanished = true
	var again func()
	again = func() {
		if m.w.owner.fleet == nil {
			m.w.after(time.Second, again)
			return
		}
		duties, _ := m.w.owner.fleet.Remove(m.w.owner.clock(), m.name)
		delete(m.w.owner.known, m.name)
		m.w.owner.do(duties)
		m.start()
	}
	m.w.after(m.w.between(0, 4*time.Minute), again)
}

// crash kills the program at a step, now and then.
func (m *machine) crash() bool {
	if m.w.troubled() && m.w.rand.IntN(200) == 0 {
		m.stop()
	}
	return m.fleet == nil
}

func (m *machine) tick(life int) {
	if m.dead(life) {
		return
	}
	m.do(m.fleet.Tick(m.clock()))
	if m.fleet != nil && m.w.now-m.claimed >= ClaimWait {
		m.claim(life)
	}
	m.w.after(CheckEvery, func() { m.tick(life) })
}

// report returns the next report, complete.
func (m *machine) report() Report {
	r := m.fleet.Report(m.clock())
	r.Runner, r.Incarnation, r.Journal = m.name, m.incarnation, m.changes
	return r
}

// send sends a message to the owner, and takes the answer while the program lives.
func (m *machine) send(message any) {
	m.messages++
	life := m.life
	take := func(reply Reply) {
		m.w.send(m, func() {
			if !m.dead(life) {
				m.take(life, reply)
			}
		})
	}
	taken := func(reply DoneReply) {
		m.w.send(m, func() {
			if !m.dead(life) {
				m.do(m.fleet.Answered(reply))
			}
		})
	}
	m.w.send(m, func() { m.w.owner.receive(m, message, take, taken) })
}

func (m *machine) take(life int, reply Reply) {
	m.do(m.fleet.Reply(m.clock(), reply))
	switch {
	case m.dead(life):
	case reply.Hello:
		m.hello(life)
	case reply.Claim != "" && len(reply.Jobs)+len(reply.Void) > 0:
		m.claim(life)
	}
}

func (m *machine) hello(life int) {
	if !m.dead(life) {
		m.send(Hello{m.report(), Announcement{Slots: 2, Agents: []Agent{{ID: "a", Idempotent: true}}}})
	}
}

func (m *machine) claim(life int) {
	if m.dead(life) {
		return
	}
	m.claims, m.claimed = m.claims+1, m.w.now
	free := max(0, 2-m.fleet.Busy())
	id := fmt.Sprintf("%s-%d-%d", m.name, life, m.claims)
	m.send(m.fleet.Claim(m.clock(), m.report(), id, free, map[string]int{"a": free}))
}

func (m *machine) beat(life int) {
	if m.dead(life) {
		return
	}
	if len(m.fleet.held) > 0 {
		m.send(Beat{m.report()})
	}
	m.w.after(BeatEvery, func() { m.beat(life) })
}

// do carries out steps, and dies between them now and then.
func (m *machine) do(steps []Step) {
	for _, s := range steps {
		if m.crash() {
			return
		}
		switch s.Kind {
		case StepWrite:
			m.write(s)
		case StepEpoch:
			m.epoch = max(m.epoch, s.Epoch)
		case StepStart:
			m.begin(s.Token, s.Job)
		case StepResume:
			m.resume(s.Token)
		case StepLease:
			m.extend(s.Token, s.Until)
		case StepEnd:
			m.end(s.Token)
		case StepSend:
			m.outcome(m.life, s.Token)
		case StepForget:
			delete(m.journal, s.Token)
			delete(m.outcomes, s.Token)
			m.changes++
		}
	}
}

// write writes a state, which takes time. If the program dies meanwhile, it is written or not.
func (m *machine) write(s Step) {
	life, incarnation := m.life, m.incarnation
	slow := m.w.between(0, 20*time.Millisecond)
	if m.w.troubled() && m.w.chance(3) {
		slow = m.w.between(0, 30*time.Second)
	}
	m.w.after(slow, func() {
		if m.incarnation != incarnation || m.dead(life) && (m.life != life || m.w.chance(50)) {
			return
		}
		e, had := m.journal[s.Token]
		if !had {
			m.order = append(m.order, s.Token)
			e.Job = Job{Token: s.Token}
		}
		if s.State == Offered {
			e.Job = s.Job
		}
		e.State = s.State
		m.journal[s.Token] = e
		m.changes++
		wrote := func() {
			if !m.dead(life) && !m.crash() {
				m.do(m.fleet.Wrote(m.clock(), s.Token, s.State))
			}
		}
		if m.dead(life) || s.State != Offered || !m.w.chance(20) {
			wrote()
			return
		}
		m.fleet.Keeps(s.Token) // its job comes later
		m.w.after(m.w.between(0, 90*time.Second), wrote)
	})
}

// begin starts a run, and checks that it may begin.
func (m *machine) begin(token Token, job Job) {
	seq, _, _ := token.Task()
	task := m.w.tasks[seq-1]
	task.began++
	task.running++
	m.w.begun++
	if task.began > 1 && !job.Idempotent {
		m.w.fault("task %d began twice, with %s at %s", task.number, token, m.w.now)
	}
	if task.running > 1 || m.keepers[token] != nil {
		m.w.fault("task %d runs twice at once, with %s at %s", task.number, token, m.w.now)
	}
	k := &keeper{task: task}
	if old := m.keepers[token]; old != nil {
		return
	}
	m.keepers[token] = k
	if h := m.fleet.held[token]; h != nil && job.Idempotent && m.w.broken != noSelfFencing {
		m.extend(token, h.lease)
	}
	m.w.after(task.long, func() { m.finish(token, k, "ok") })
}

// finish ends a run; an empty outcome says that nothing is known of its end.
func (m *machine) finish(token Token, k *keeper, outcome string) {
	if k.over {
		return
	}
	k.over = true
	k.task.running--
	if m.keepers[token] != k {
		return
	}
	if outcome != "" {
		m.outcomes[token] = outcome
	}
	if m.fleet != nil && outcome != "" {
		m.do(m.fleet.Ended(token))
	}
}

// extend gives the keeper of a run another end.
func (m *machine) extend(token Token, until time.Duration) {
	k := m.keepers[token]
	if k == nil || until <= k.lease {
		return
	}
	k.lease = until
	wait := time.Duration(float64(until-m.clock().Boot) / m.drift)
	m.w.after(max(0, wait)+CheckEvery, func() {
		if m.clock().Boot >= k.lease {
			m.finish(token, k, "killed")
		}
	})
}

// end ends a run, within its grace period.
func (m *machine) end(token Token) {
	k := m.keepers[token]
	if k == nil {
		m.outcomes[token] = "killed"
		m.do(m.fleet.Ended(token))
		return
	}
	m.w.after(m.w.between(0, 5*time.Second), func() { m.finish(token, k, "killed") })
}

// resume finds what became of a run of an earlier program.
func (m *machine) resume(token Token) {
	k := m.keepers[token]
	switch {
	case m.outcomes[token] != "":
	case k != nil && !k.over:
		return // the keeper reports
	default:
		m.outcomes[token] = "lost"
	}
	m.do(m.fleet.Ended(token))
}

// outcome sends the outcome of a run until it is answered.
func (m *machine) outcome(life int, token Token) {
	if m.dead(life) || m.fleet.held[token] == nil {
		return
	}
	m.send(Done{Report: m.report(), Token: token, Outcome: []byte(m.outcomes[token])})
	m.w.after(m.w.between(2*time.Second, 8*time.Second), func() { m.outcome(life, token) })
}
