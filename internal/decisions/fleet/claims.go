package fleet

import "time"

// claim is a pending claim.
type claim struct {
	id       string
	number   int64 // of its report
	until    time.Time
	free     int
	by       map[string]int
	assigned map[Token]bool // whose jobs are not there yet
	reply    Reply
	size     int
}

// Terms are what a task says about its assignment.
type Terms struct {
	Idempotent bool // the agent may do the same twice; the runner must say so too
	Deadline   time.Time
}

// Fits says whether a task may go to a runner, by what it announced about the agent.
type Fits func(Known, Agent) bool

// Assign takes a place of a pending claim of a runner that fits, the one with the most free places. The
// caller commits the intent, and then calls Send or Unassign.
func (o *Owner) Assign(now time.Time, token Token, agent string, t Terms, fits Fits) (Assignment, bool) {
	var best *peer
	for _, p := range o.asking {
		if (best == nil || better(p, best)) && o.places(now, p, agent, fits) > 0 {
			best = p
		}
	}
	if best == nil {
		return Assignment{}, false
	}
	best.claim.free--
	best.claim.by[agent]--
	best.claim.assigned[token] = true
	a := Assignment{Token: token, Runner: best.Runner, Incarnation: best.Incarnation, Agent: agent}
	a.Idempotent, a.Deadline = t.Idempotent && best.agent(agent).Idempotent, t.Deadline
	o.open(now, a).unsent = true
	return a, true
}

// better orders runners with a free place: by free places, then by name.
func better(p, q *peer) bool {
	if p.claim.free != q.claim.free {
		return p.claim.free > q.claim.free
	}
	return p.Runner < q.Runner
}

// HasRoom reports whether claims of runners that fit are pending for more than some jobs of an agent.
func (o *Owner) HasRoom(now time.Time, agent string, taken int, fits Fits) bool {
	for _, p := range o.asking {
		if taken -= o.places(now, p, agent, fits); taken < 0 {
			return true
		}
	}
	return false
}

func (o *Owner) places(now time.Time, p *peer, agent string, fits Fits) int {
	c := p.claim
	if c == nil || p.excuse() != "" || !now.Before(c.until) || len(c.assigned)+len(c.reply.Jobs) >= MaxJobs || c.size > claimBytes {
		return 0
	}
	if n := min(c.free, c.by[agent]); n > 0 && fits(p.Known, p.agent(agent)) {
		return n
	}
	return 0
}

// Unassign gives back an assignment whose intent was not committed.
func (o *Owner) Unassign(now time.Time, token Token) []Duty {
	r := o.runs[token]
	if r == nil {
		return nil
	}
	o.drop(token)
	if c := o.claimOf(r); c != nil {
		delete(c.assigned, token)
		c.free++
		c.by[r.Agent]++
		return o.answer(now, o.peers[r.Runner], false)
	}
	return nil
}

// Send hands over the job of an assignment whose intent is committed. If its claim isn't pending any more, no answer
// has the job, so the runner never gets it, and it is voided at once.
func (o *Owner) Send(now time.Time, job Job) []Duty {
	r := o.runs[job.Token]
	if r == nil || !r.unsent {
		return nil
	}
	r.unsent = false
	c := o.claimOf(r)
	if c == nil {
		o.drop(job.Token)
		return []Duty{{Kind: DutyVoided, Token: job.Token, Runner: r.Runner}}
	}
	delete(c.assigned, job.Token)
	c.reply.Jobs = append(c.reply.Jobs, job)
	c.size += len(job.Work)
	return o.answer(now, o.peers[r.Runner], false)
}

// claimOf returns the pending claim that an assignment has a place of; nil if it isn't pending any more.
func (o *Owner) claimOf(r *run) *claim {
	p := o.peers[r.Runner]
	if p == nil || p.claim == nil || !p.claim.assigned[r.Token] {
		return nil
	}
	return p.claim
}

// answer answers the pending claim of a runner: when all of its jobs are there, or now.
func (o *Owner) answer(now time.Time, p *peer, must bool) []Duty {
	c := p.claim
	if c == nil || !must && (len(c.assigned) > 0 || len(c.reply.Jobs) == 0) {
		return nil
	}
	o.ask(p, nil)
	reply := o.reply(now, p, c.number)
	reply.Claim, reply.Jobs = c.id, c.reply.Jobs
	return []Duty{{Kind: DutyAnswer, Runner: p.Runner, Claim: c.id, Reply: reply}}
}

// ask sets the pending claim of a runner; nil: none.
func (o *Owner) ask(p *peer, c *claim) {
	if p.claim = c; c == nil {
		delete(o.asking, p.Runner)
		return
	}
	o.asking[p.Runner] = p
	if all := o.of[p.Runner]; all != nil {
		all.next = time.Time{} // a token to void is one for the answer
	}
}
