package fleet

import (
	"fmt"
	"maps"
	"time"
)

// Known is what the owner keeps of a runner in a file, so that plans outlive a restart.
type Known struct {
	Runner      string       `json:"runner"`
	Incarnation string       `json:"incarnation"`
	Session     string       `json:"session"`          // the last one that was served
	Since       time.Time    `json:"since,omitzero"`   // when it began, by the clock of the runner
	Journal     int64        `json:"journal"`          // the greatest count that was reported
	Number      int64        `json:"number"`           // of the newest report of the session
	Drained     bool         `json:"drained,omitzero"` // by a person
	Offers      Announcement `json:"offers"`
}

// agent returns what a runner announced about an agent; the zero value for nothing.
func (k Known) agent(id string) Agent {
	for _, a := range k.Offers.Agents {
		if a.ID == id {
			return a
		}
	}
	return Agent{}
}

// Agent returns what the runner announced about an agent.
func (k Known) Agent(id string) (Agent, bool) { a := k.agent(id); return a, a.ID != "" }

// excuse returns why a runner gets no jobs; "" if it gets some.
func (p *peer) excuse() string {
	switch {
	case p.refused != "":
		return p.refused
	case p.Drained:
		return "drained by a person"
	}
	if p.twin != "" {
		return "two runners have this name: " + p.twin
	}
	return p.limited
}

// Know takes a runner from the file of the owner.
func (o *Owner) Know(k Known) {
	o.peers[k.Runner] = &peer{Known: k, older: map[string]bool{}, unknown: map[Token]bool{}}
}

// Drain makes a runner get no more jobs, or some again.
func (o *Owner) Drain(now time.Time, name string, on bool) ([]Duty, bool) {
	p := o.peers[name]
	if p == nil {
		return nil, false
	}
	p.Drained = on
	if on && p.claim != nil && len(p.claim.assigned) == 0 {
		return o.answer(now, p, true), true
	}
	return nil, true
}

// Remove forgets a runner, so that one with a new state may have its name. Its runs are lost; an idempotent
// one may begin again when its lease has ended.
func (o *Owner) Remove(now time.Time, name string) (duties []Duty, known bool) {
	p := o.peers[name]
	if p == nil {
		return nil, false
	}
	duties = o.answer(now, p, true)
	delete(o.peers, name)
	for _, token := range sorted(o.runsOf(name)) {
		if r := o.runs[token]; !r.settles {
			r.orphan = true
			duties = append(duties, o.check(now, r)...)
		}
	}
	return duties, true
}

// Refuse stops serving a runner until Remove, such as one whose message was malformed.
func (o *Owner) Refuse(now time.Time, name, why string) []Duty {
	p := o.peers[name]
	if p == nil {
		o.Know(Known{Runner: name})
		p = o.peers[name]
	}
	if p.refused != "" {
		return nil
	}
	p.refused = why
	return append([]Duty{{Kind: DutyRefused, Runner: name, Why: why}}, o.answer(now, p, true)...)
}

// Hello takes the hello of a session. A runner that isn't known is known from now on.
func (o *Owner) Hello(now time.Time, m Hello) (Reply, []Duty) {
	p := o.peers[m.Runner]
	if p == nil {
		o.Know(Known{Runner: m.Runner})
		p = o.peers[m.Runner]
	}
	if p.Incarnation == "" && p.refused == "" {
		p.Incarnation = m.Incarnation
	}
	if why := p.stranger(m.Report); why != "" {
		return o.turnDown(now, p, m.Report, why)
	}
	var before []Duty
	if p.refused == "" && m.Session != p.Session {
		if p.Session != "" {
			p.older[p.Session] = true
		}
		before = o.answer(now, p, true) // of a program that has ended
		p.Session, p.Since, p.Number = m.Session, m.Time, 0
	}
	if p.refused == "" {
		p.Offers = m.Announcement
	}
	reply, duties := o.report(now, p, m.Report)
	return reply, append(before, duties...)
}

// stranger returns why a report isn't one of the runner that the owner knows; "" if it is.
func (p *peer) stranger(m Report) string {
	switch {
	case m.Incarnation != p.Incarnation:
		return "its state was lost, or another machine uses its name"
	case p.older[m.Session]:
		return "another program uses its state"
	case m.Session != p.Session && m.Journal <= p.Journal:
		return "its state was rolled back, or another program uses a copy of it"
	}
	return ""
}

// turnDown answers a stranger. A runner that is connected goes on with its runs: the stranger may be the copy.
func (o *Owner) turnDown(now time.Time, p *peer, m Report, why string) (Reply, []Duty) {
	reply := Reply{Protocol: Protocol, Epoch: o.epoch, Number: m.Number, Session: m.Session, Refused: why}
	if p.refused != "" || !m.Time.After(p.Since) {
		return reply, nil // or it was sent before the session that is served, and is late
	}
	alive := p.Session != "" && now.Sub(p.seen) < o.o.Lease
	if !alive {
		return reply, o.Refuse(now, p.Runner, why)
	}
	first := p.twin == ""
	p.twin, p.twinEnd = why, now.Add(2*o.o.Lease)
	if first {
		return reply, []Duty{{Kind: DutyRefused, Runner: p.Runner, Why: p.excuse()}}
	}
	return reply, nil
}

// Beat takes a beat.
func (o *Owner) Beat(now time.Time, m Beat) (Reply, []Duty) {
	p, reply, duties := o.meet(now, m.Report)
	if p == nil {
		return reply, duties
	}
	return o.report(now, p, m.Report)
}

// Claim takes a claim. Unless it is answered at once, a duty answers it later.
func (o *Owner) Claim(now time.Time, m Claim) (reply Reply, answered bool, duties []Duty) {
	p, reply, duties := o.meet(now, m.Report)
	reply.Claim = m.ID
	if p == nil {
		return reply, true, duties
	}
	newest := m.Number > p.Number
	reply, duties = o.report(now, p, m.Report)
	reply.Claim = m.ID
	waiting := len(reply.Void)+len(reply.Cancel)+len(reply.Settled) > 0
	if !newest || waiting || m.Free == 0 || m.DiskFull != "" || p.excuse() != "" {
		return reply, true, duties
	}
	duties = append(duties, o.answer(now, p, true)...)
	by := maps.Clone(m.By)
	if by == nil {
		by = map[string]int{}
	}
	o.ask(p, &claim{id: m.ID, number: m.Number, until: now.Add(claimUse), free: m.Free, by: by, assigned: map[Token]bool{}})
	return Reply{}, false, duties
}

// meet returns the runner of a report that isn't a hello; nil if it isn't served, with the answer.
func (o *Owner) meet(now time.Time, m Report) (*peer, Reply, []Duty) {
	reply := Reply{Protocol: Protocol, Epoch: o.epoch, Number: m.Number, Session: m.Session, Hello: true}
	p := o.peers[m.Runner]
	switch {
	case p == nil:
		return nil, reply, nil
	case m.Incarnation == p.Incarnation && m.Session == p.Session:
		return p, reply, nil
	case m.Incarnation == p.Incarnation && !p.older[m.Session]:
		return nil, reply, nil
	}
	reply, duties := o.turnDown(now, p, m, p.stranger(m))
	return nil, reply, duties
}

// report takes what a served runner says about its runs.
func (o *Owner) report(now time.Time, p *peer, m Report) (Reply, []Duty) {
	var duties []Duty
	p.seen, p.off = now, m.Time.Sub(now)
	newest := m.Number > p.Number
	if newest && m.Journal < p.Journal {
		duties = append(duties, o.Refuse(now, p.Runner, "its state was rolled back")...)
	}
	if newest {
		p.Number, p.Journal = m.Number, max(p.Journal, m.Journal)
		o.limit(now, p, m)
	}
	for _, r := range m.Runs {
		duties = append(duties, o.listed(now, p, r)...)
	}
	if newest {
		duties = append(duties, o.missing(now, p, m)...)
	}
	for _, token := range m.Voided {
		duties = append(duties, o.voided(now, p, token)...)
	}
	reply := o.reply(now, p, m.Number)
	for _, token := range m.Voided {
		if o.runs[token] == nil {
			reply.Settled = append(reply.Settled, token)
		}
	}
	o.fill(p, m, &reply)
	return reply, duties
}

// limit notes why a runner gets no jobs, apart from what a person decided.
func (o *Owner) limit(now time.Time, p *peer, m Report) {
	p.limited = ""
	if now.After(p.twinEnd) {
		p.twin = ""
	}
	switch {
	case m.Protocol > Protocol || m.Protocol < max(1, Protocol-1):
		p.limited = fmt.Sprintf("it speaks protocol %d, and the owner %d; install the same version of mailboxd", m.Protocol, Protocol)
	case p.off > clockMost || p.off < -clockMost:
		p.limited = fmt.Sprintf("its clock differs by %s; set it", p.off.Round(time.Second))
	case m.DiskFull != "":
		p.limited = m.DiskFull
	}
}

// listed takes that a runner has a token.
func (o *Owner) listed(now time.Time, p *peer, m RunReport) []Duty {
	r := o.runs[m.Token]
	if r == nil {
		return o.lookUp(now, p, m.Token)
	}
	if !r.of(p) {
		return nil
	}
	r.Listed, r.seen = true, true
	r.began = r.began || m.State != Offered
	r.lease, r.lost = o.leaseEnd(now), now.Add(o.o.Unreachable)
	o.of[r.Runner].sooner(r.lease)
	if r.away || r.earlier { // the ledger may say that it can't be reached
		r.away, r.earlier = false, false
		return []Duty{{Kind: DutyReached, Token: r.Token, Runner: p.Runner}}
	}
	return nil
}

// mostUnknown is how many runs a runner may list that the ledger doesn't know. Each one is looked up.
const mostUnknown = 256

// lookUp notes a run that the ledger doesn't know.
func (o *Owner) lookUp(now time.Time, p *peer, token Token) []Duty {
	if p.past(token, o.o.Past) != PastUnknown || p.unknown[token] || len(p.unknown) >= mostUnknown {
		return nil
	}
	p.unknown[token] = true
	duties := []Duty{{Kind: DutyUnknown, Token: token, Runner: p.Runner}}
	if len(p.unknown) == mostUnknown {
		duties = append(duties, o.Refuse(now, p.Runner, fmt.Sprintf("it lists %d runs that the ledger doesn't know", mostUnknown))...)
	}
	return duties
}

// past returns how a run ended that a runner lists and that isn't open.
func (p *peer) past(token Token, look func(Token, string) Past) Past {
	if p.unknown[token] || len(p.unknown) >= mostUnknown {
		return PastUnknown
	}
	return look(token, p.Runner)
}

// of reports whether a runner is the one that a run was assigned to.
func (r *run) of(p *peer) bool {
	return r.Runner == p.Runner && r.Incarnation == p.Incarnation && !r.orphan
}

// missing refuses a runner that doesn't list a token any more that it had: its state was rolled back.
func (o *Owner) missing(now time.Time, p *peer, m Report) []Duty {
	has := make(map[Token]bool, len(m.Runs)+len(m.Voided))
	for _, r := range m.Runs {
		has[r.Token] = true
	}
	for _, token := range m.Voided {
		has[token] = true
	}
	for token, r := range o.runsOf(p.Runner) {
		if r.of(p) && r.seen && !r.settles && !has[token] {
			return o.Refuse(now, p.Runner, "its state was rolled back: it doesn't know a run that it had")
		}
	}
	return nil
}

// voided takes that a token will never begin at its runner.
func (o *Owner) voided(now time.Time, p *peer, token Token) []Duty {
	r := o.runs[token]
	switch {
	case r == nil || !r.of(p) || r.settles:
		return nil
	case r.began:
		return o.Refuse(now, p.Runner, "its state was rolled back: it voids a run that had begun")
	}
	o.drop(token)
	return []Duty{{Kind: DutyVoided, Token: token, Runner: p.Runner}}
}

// reply returns the answer to a report, without what depends on the tokens in it.
func (o *Owner) reply(now time.Time, p *peer, number int64) Reply {
	reply := Reply{Protocol: Protocol, Epoch: o.epoch, Number: number, Session: p.Session, Lease: o.o.Lease}
	reply.Refused, reply.Drain = p.refused, p.excuse()
	for _, token := range sorted(o.runsOf(p.Runner)) {
		r := o.runs[token]
		if !r.of(p) {
			continue
		}
		if r.cancel {
			reply.Cancel = append(reply.Cancel, token)
		}
		if o.voids(now, r) {
			reply.Void = append(reply.Void, token)
		}
	}
	return reply
}

// fill adds to an answer what becomes of the tokens that its report lists.
func (o *Owner) fill(p *peer, m Report, reply *Reply) {
	for _, listed := range m.Runs {
		r := o.runs[listed.Token]
		switch {
		case r != nil && r.of(p):
			reply.Renew = append(reply.Renew, listed.Token)
		case r != nil:
		case listed.State == Ended:
			if past := p.past(listed.Token, o.o.Past); past == PastSettled || past == PastFenced {
				reply.Settled = append(reply.Settled, listed.Token)
			}
		case isPast(p.past(listed.Token, o.o.Past)):
			reply.Cancel = append(reply.Cancel, listed.Token)
		}
	}
}

// isPast reports whether a run is known to have ended.
func isPast(past Past) bool { return past != PastUnknown && past != PastUnread && past != PastOpen }
