package fleet

import (
	"cmp"
	"time"

	"mailboxd/envelope"
)

// A Clock is the time of a runner. Boot counts also while the machine sleeps, and nobody sets it. Wall
// serves deadlines alone.
type Clock struct {
	Boot time.Duration // since the machine started
	Wall time.Time
}

// A Runner is the state machine of a runner. Its caller writes the token journal, starts and ends runs, and
// carries messages.
type Runner struct {
	session string
	epoch   int64 // the greatest that an owner had
	number  int64 // of the last report
	held    map[Token]*held
	sent    map[int64]time.Duration // when the last reports were sent
	claim   string                  // the pending claim; "": none
	since   time.Duration           // when it was sent
	broken  mutant
}

// held is a token that the journal has, or will have.
type held struct {
	job      Job
	state    RunState // as decided; the journal has it once written is equal
	written  RunState // as the journal has it; "": not yet
	lease    time.Duration
	deadline time.Duration // on the boot clock; 0: none
	began    time.Duration
	cost     envelope.Cost
	ending   bool // the run was told to end
}

// An Entry is a token in the journal, with its job.
type Entry struct {
	Job   Job
	State RunState
}

// A Step is what the caller of a Runner does next.
type Step struct {
	Kind  StepKind
	Token Token
	State RunState      // of StepWrite
	Job   Job           // of StepWrite with Offered, StepStart and StepResume
	Until time.Duration // of StepLease: boot time when the run must have ended unless it is extended
	Epoch int64         // of StepEpoch
	Why   string        // of StepEnd, for people
}

// A StepKind says what a Step is.
type StepKind string

// The kinds.
const (
	StepWrite  StepKind = "write"  // write the state to the journal, synced; then call Wrote
	StepStart  StepKind = "start"  // start the run
	StepResume StepKind = "resume" // the run may exist from an earlier session: find its end, then call Ended
	StepLease  StepKind = "lease"  // tell the keeper of an idempotent run, which outlives the runner's program, when to end it
	StepEnd    StepKind = "end"    // end the run; its outcome comes through Ended
	StepSend   StepKind = "send"   // send the outcome; again until Answered
	StepForget StepKind = "forget" // remove token and outcome from the journal
	StepEpoch  StepKind = "epoch"  // write the epoch to the journal
)

// sentReports is for how many reports a Runner remembers when they were sent.
const sentReports = 64

// NewRunner returns the state machine of a session, from what the journal has. A token that was offered and
// not begun becomes a tombstone.
func NewRunner(session string, epoch int64, journal []Entry) (*Runner, []Step) {
	r := &Runner{session: session, epoch: epoch, held: map[Token]*held{}, sent: map[int64]time.Duration{}}
	var steps []Step
	for _, e := range journal {
		h := &held{job: e.Job, state: e.State, written: e.State}
		r.held[e.Job.Token] = h
		switch e.State {
		case Offered:
			steps = append(steps, r.write(h, Voided))
		case Began:
			steps = append(steps, Step{Kind: StepResume, Token: e.Job.Token, Job: e.Job})
		case Ended:
			steps = append(steps, Step{Kind: StepSend, Token: e.Job.Token})
		}
	}
	return r, steps
}

// Report returns the next report. The caller adds its name, its incarnation, and the count of the journal.
func (r *Runner) Report(now Clock) Report {
	r.number++
	r.sent[r.number] = now.Boot
	delete(r.sent, r.number-sentReports)
	report := Report{Protocol: Protocol, Session: r.session, Number: r.number, Time: now.Wall}
	for _, token := range sorted(r.held) {
		switch h := r.held[token]; h.written {
		case Voided:
			report.Voided = append(report.Voided, token)
		case Began:
			report.Runs = append(report.Runs, RunReport{Token: token, State: Began, Cost: h.cost, Since: now.Boot - h.began})
		case Offered, Ended:
			report.Runs = append(report.Runs, RunReport{Token: token, State: h.written, Cost: h.cost})
		}
	}
	return report
}

// Claim makes a report the next claim. The claim before isn't pending any more.
func (r *Runner) Claim(now Clock, report Report, id string, free int, by map[string]int) Claim {
	r.claim, r.since = id, now.Boot
	return Claim{Report: report, ID: id, Free: free, By: by}
}

// Busy returns how many tokens take a slot: those that may begin, and those whose run has not ended.
func (r *Runner) Busy() (busy int) {
	for _, h := range r.held {
		if h.state == Offered || h.state == Began {
			busy++
		}
	}
	return busy
}

// Spent records the cost of a run until now, for reports.
func (r *Runner) Spent(token Token, cost envelope.Cost) {
	if h := r.held[token]; h != nil {
		h.cost = cost
	}
}

// Reply takes an answer to a report.
func (r *Runner) Reply(now Clock, reply Reply) (steps []Step) {
	if reply.Epoch < r.epoch || reply.Session != r.session {
		return nil // of an owner that another one replaced, or to another session
	}
	if reply.Epoch > r.epoch {
		r.epoch = reply.Epoch
		steps = append(steps, Step{Kind: StepEpoch, Epoch: r.epoch})
	}
	sent, known := r.sentAt(reply)
	for _, token := range reply.Renew {
		if h := r.held[token]; h != nil && known {
			steps = append(steps, r.extend(h, sent+reply.Lease)...)
		}
	}
	for _, token := range reply.Settled {
		steps = append(steps, r.settle(token)...)
	}
	for _, token := range reply.Void {
		steps = append(steps, r.void(token)...)
	}
	for _, token := range reply.Cancel {
		steps = append(steps, r.Cancel(token, "the owner cancelled it")...)
	}
	return append(steps, r.take(now, reply, sent, known)...)
}

// sentAt returns when the report was sent that an answer is for. A pending claim may be older than the reports of
// the outcomes that came meanwhile.
func (r *Runner) sentAt(reply Reply) (at time.Duration, known bool) {
	if reply.Claim != "" && reply.Claim == r.claim {
		return r.since, true
	}
	at, known = r.sent[reply.Number]
	return at, known
}

// take takes the jobs of an answer, while its claim is pending.
func (r *Runner) take(now Clock, reply Reply, sent time.Duration, known bool) (steps []Step) {
	pending := known && reply.Claim != "" && reply.Claim == r.claim && now.Boot-r.since <= ClaimWait
	if reply.Claim == r.claim {
		r.claim = ""
	}
	if !pending && r.broken != lateAnswers {
		return nil
	}
	for _, job := range reply.Jobs {
		if h := r.held[job.Token]; h != nil {
			continue
		}
		h := &held{job: job, lease: sent + reply.Lease}
		if r.broken == lateAnswers {
			h.lease = now.Boot + reply.Lease
		}
		if job.Remaining > 0 {
			h.deadline = now.Boot + job.Remaining
		}
		r.held[job.Token] = h
		steps = append(steps, r.write(h, Offered))
	}
	return steps
}

// Keeps takes that the journal has an offered token whose job isn't complete at the runner yet, such as one with a
// large bundle. It is listed from now on, so its lease is extended. Wrote follows when the job can begin.
func (r *Runner) Keeps(token Token) {
	if h := r.held[token]; h != nil && h.state == Offered {
		h.written = Offered
	}
}

// Wrote takes that the journal has a state of a token.
func (r *Runner) Wrote(now Clock, token Token, state RunState) []Step {
	h := r.held[token]
	if h == nil || h.state != state {
		return nil
	}
	h.written = state
	switch state {
	case Offered:
		if h.ending || r.lapsed(now, h) {
			return []Step{r.write(h, Voided)}
		}
		if r.broken == beganAfterwards {
			return []Step{{Kind: StepStart, Token: token, Job: h.job}, r.write(h, Began)}
		}
		return []Step{r.write(h, Began)}
	case Began:
		return r.begin(now, h)
	case Ended:
		return []Step{{Kind: StepSend, Token: token}}
	}
	return nil
}

// begin starts a run whose state is written. One that was cancelled meanwhile, or whose lease ended so that
// another attempt may begin, is ended instead: it can't become a tombstone any more.
func (r *Runner) begin(now Clock, h *held) []Step {
	h.began = now.Boot
	if r.broken == beganAfterwards {
		return nil
	}
	steps := []Step{{Kind: StepStart, Token: h.job.Token, Job: h.job}}
	if h.job.Idempotent && r.broken != noSelfFencing {
		steps = append([]Step{{Kind: StepLease, Token: h.job.Token, Until: h.lease}}, steps...)
	}
	if h.ending || h.job.Idempotent && r.lapsed(now, h) {
		h.ending = true
		return []Step{{Kind: StepEnd, Token: h.job.Token, Why: "it was cancelled, or its lease ended, before it began"}}
	}
	return steps
}

// Ended takes that a run has ended and its outcome is durable.
func (r *Runner) Ended(token Token) []Step {
	h := r.held[token]
	if h == nil || h.state != Began {
		return nil
	}
	return []Step{r.write(h, Ended)}
}

// Cancel ends a run, or keeps it from beginning.
func (r *Runner) Cancel(token Token, why string) []Step {
	h := r.held[token]
	if h == nil || h.ending || h.state == Ended || h.state == Voided {
		return nil
	}
	h.ending = true
	if h.written == Began {
		return []Step{{Kind: StepEnd, Token: token, Why: why}}
	}
	return nil // Wrote sees it
}

// Unfit keeps a token from beginning, because the runner can't run it: its disk is full, or the binding of
// the agent changed. It reports whether that is possible still.
func (r *Runner) Unfit(token Token) ([]Step, bool) {
	h := r.held[token]
	if h == nil || h.state != Offered {
		return nil, false
	}
	h.ending = true
	return nil, true
}

// void answers an order that a token must not begin. Without it, a tombstone keeps it from beginning later.
// With it, the next report lists it.
func (r *Runner) void(token Token) []Step {
	if r.held[token] != nil || r.broken == lateAnswers {
		if r.held[token] == nil {
			r.held[token] = &held{job: Job{Token: token}, state: Voided, written: Voided}
		}
		return nil
	}
	h := &held{job: Job{Token: token}}
	r.held[token] = h
	return []Step{r.write(h, Voided)}
}

// settle forgets a token that the owner has settled. The owner never settles one that may run.
func (r *Runner) settle(token Token) []Step {
	h := r.held[token]
	if h == nil || h.written != Ended && h.written != Voided {
		return nil
	}
	delete(r.held, token)
	return []Step{{Kind: StepForget, Token: token}}
}

// Answered takes the answer to an outcome. Without an answer, or with Later, the caller sends again.
func (r *Runner) Answered(reply DoneReply) []Step {
	if reply.Epoch < r.epoch || !reply.Settled && reply.Fenced == "" {
		return nil
	}
	return r.settle(reply.Token)
}

// Tick ends what must end by itself at a time: idempotent runs whose lease ended, and runs past their deadline.
func (r *Runner) Tick(now Clock) (steps []Step) {
	for _, token := range sorted(r.held) {
		h := r.held[token]
		switch {
		case h.state != Began || h.ending:
		case h.job.Idempotent && h.lease > 0 && r.lapsed(now, h):
			steps = append(steps, r.Cancel(token, "the owner didn't answer until the lease ended; another attempt may begin elsewhere")...)
		case h.deadline > 0 && now.Boot >= h.deadline, !h.job.Deadline.IsZero() && !now.Wall.Before(h.job.Deadline):
			steps = append(steps, r.Cancel(token, "deadline reached")...)
		}
	}
	return steps
}

// lapsed reports whether the lease of a token has ended.
func (r *Runner) lapsed(now Clock, h *held) bool {
	return r.broken != noSelfFencing && now.Boot >= h.lease
}

// extend extends the lease of a token.
func (r *Runner) extend(h *held, until time.Duration) []Step {
	if until <= h.lease {
		return nil
	}
	h.lease = until
	if h.job.Idempotent && h.state == Began && !h.ending {
		return []Step{{Kind: StepLease, Token: h.job.Token, Until: until}}
	}
	return nil
}

// write decides a state and asks for writing it.
func (r *Runner) write(h *held, state RunState) Step {
	h.state = state
	step := Step{Kind: StepWrite, Token: h.job.Token, State: state}
	if state == Offered {
		step.Job = h.job
	}
	return step
}

// Epoch returns the greatest epoch that the runner has seen.
func (r *Runner) Epoch() int64 { return r.epoch }

// Holds returns the state of a token as the journal has it, and its job.
func (r *Runner) Holds(token Token) (Job, RunState) {
	h := r.held[token]
	if h == nil {
		return Job{}, ""
	}
	return h.job, cmp.Or(h.written, h.state)
}

// A mutant is a fault that the simulation puts into a state machine, to show that it finds it. Only tests set one.
type mutant int

// The mutants.
const (
	sound           mutant = iota
	requeueAtLease         // the owner starts every task afresh when a lease ends
	lateAnswers            // the runner takes jobs of any answer, and writes no tombstone
	beganAfterwards        // the runner starts a run before the journal says so
	noSelfFencing          // the runner doesn't end idempotent runs at the end of their lease
	shortOwnerLease        // the owner's lease ends before the runner's
)
