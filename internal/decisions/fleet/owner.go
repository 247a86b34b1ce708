package fleet

import (
	"fmt"
	"time"
)

// Options of an Owner.
type Options struct {
	Lease       time.Duration // of a run; 0: a minute
	Unreachable time.Duration // after which a run of a silent runner is lost; 0: a day

	// Past says how an assignment of a runner ended that isn't open, as the ledger knows it. The token of another
	// runner is unknown. It changes nothing.
	Past func(token Token, runner string) Past
}

// A Past is how an assignment ended.
type Past int

// The pasts.
const (
	PastUnknown Past = iota // the ledger doesn't know the token
	PastSettled             // by its outcome
	PastClosed              // otherwise: it was voided, lost or given up
	PastFenced              // otherwise, and its outcome is kept for review already
	PastUnread              // the ledger can't be read now
	PastOpen                // it has no end in the ledger yet: its outcome is awaited, or will be
)

// An Assignment is an attempt that a runner has.
type Assignment struct {
	Token       Token
	Runner      string
	Incarnation string
	Agent       string
	Idempotent  bool      // another attempt may begin when the lease has ended
	Deadline    time.Time // zero: none
	Listed      bool      // the runner is known to have it
}

// An Owner is the state machine of the owner. Its caller has the ledger, and carries messages.
type Owner struct {
	epoch  int64
	o      Options
	peers  map[string]*peer
	runs   map[Token]*run
	of     map[string]*assigned // the same by the name of their runner
	asking map[string]*peer     // runners with a pending claim
	broken mutant
}

// peer is what the owner knows of a runner.
type peer struct {
	Known
	older   map[string]bool // sessions that a newer one replaced
	seen    time.Time
	off     time.Duration // its clock less the owner's
	refused string        // why it isn't served
	limited string        // why it gets no jobs
	twin    string        // another one with its name reported, and why it is another one
	twinEnd time.Time     // until when twin counts
	claim   *claim
	unknown map[Token]bool // what it listed that the ledger doesn't know
}

// run is an open assignment.
type run struct {
	Assignment
	at      time.Time // when it was assigned, or the owner began
	lease   time.Time // when its lease ends at the owner
	lost    time.Time // when it is lost
	seen    bool      // a report has listed it since the owner began
	began   bool
	earlier bool // an earlier owner assigned it, and no report has listed it since
	unsent  bool // no answer has its job yet
	away    bool // its lease has ended
	cancel  bool
	orphan  bool // its runner was removed
	settles bool // its outcome is being committed
}

// assigned are the open assignments of a runner.
type assigned struct {
	runs map[Token]*run
	next time.Time // Tick has nothing to do for them before
}

// sooner says that Tick may have something to do at a time.
func (a *assigned) sooner(at time.Time) {
	if at.Before(a.next) {
		a.next = at
	}
}

// A Duty is what the caller of an Owner does next.
type Duty struct {
	Kind   DutyKind
	Token  Token
	Runner string
	Reply  Reply  // of DutyAnswer
	Claim  string // of DutyAnswer
	Why    string // for people
}

// A DutyKind says what a Duty is.
type DutyKind string

// The kinds.
const (
	DutyAnswer      DutyKind = "answer"      // answer a claim
	DutyVoided      DutyKind = "voided"      // the assignment never began: its task starts afresh
	DutyRepeat      DutyKind = "repeat"      // the attempt is lost, and its agent is idempotent: another one may begin
	DutyLost        DutyKind = "lost"        // the attempt is lost; it may have begun
	DutyUnreachable DutyKind = "unreachable" // the lease of a run has ended; it may go on
	DutyReached     DutyKind = "reached"     // the runner of such a run is back, or reports a restored one
	DutyRefused     DutyKind = "refused"     // a runner isn't served from now on
	DutyUnknown     DutyKind = "unknown"     // a runner has a token that the ledger doesn't know
)

// Margin is how much longer a lease is at the owner: the runner checks each CheckEvery, gives its run a grace
// period, and its clock may be slower.
func Margin(lease time.Duration) time.Duration { return 15*time.Second + lease/20 }

// CheckEvery is how often a runner calls Tick at least.
const CheckEvery = time.Second

const (
	claimUse   = ClaimWait - 500*time.Millisecond // how long the owner uses a claim
	claimBytes = MaxMessage / 2                   // of the jobs of an answer, after which it has no further ones
	clockMost  = 15 * time.Minute                 // by which the clock of a runner may differ
)

// NewOwner returns the state machine of an owner that took an epoch.
func NewOwner(epoch int64, o Options) *Owner {
	if o.Lease == 0 {
		o.Lease = time.Minute
	}
	if o.Unreachable == 0 {
		o.Unreachable = 24 * time.Hour
	}
	if o.Past == nil {
		o.Past = func(Token, string) Past { return PastUnknown }
	}
	owner := &Owner{epoch: epoch, o: o, peers: map[string]*peer{}, runs: map[Token]*run{}}
	owner.of, owner.asking = map[string]*assigned{}, map[string]*peer{}
	return owner
}

// Restore takes an assignment that the ledger has open when the owner begins. It gets a whole lease.
func (o *Owner) Restore(now time.Time, a Assignment) {
	r := o.open(now, a)
	r.began, r.earlier = a.Listed, true
}

// open opens an assignment.
func (o *Owner) open(now time.Time, a Assignment) *run {
	r := &run{Assignment: a, at: now, lost: now.Add(o.o.Unreachable)}
	r.lease = o.leaseEnd(now)
	o.runs[a.Token] = r
	all := o.of[a.Runner]
	if all == nil {
		all = &assigned{runs: map[Token]*run{}, next: r.lost}
		o.of[a.Runner] = all
	}
	all.runs[a.Token] = r
	all.sooner(o.due(r))
	return r
}

// runsOf returns the open assignments of a runner.
func (o *Owner) runsOf(name string) map[Token]*run {
	if all := o.of[name]; all != nil {
		return all.runs
	}
	return nil
}

// drop closes an assignment.
func (o *Owner) drop(token Token) {
	if r := o.runs[token]; r != nil {
		delete(o.runs, token)
		all := o.of[r.Runner]
		if delete(all.runs, token); len(all.runs) == 0 {
			delete(o.of, r.Runner)
		}
	}
}

func (o *Owner) leaseEnd(now time.Time) time.Time {
	if o.broken == shortOwnerLease {
		return now.Add(o.o.Lease / 2)
	}
	return now.Add(o.o.Lease + Margin(o.o.Lease))
}

// Cancel asks the runner of an assignment to end it. The answers to its reports repeat that. The duties answer its
// pending claim, if there is one; otherwise an Order may make it faster.
func (o *Owner) Cancel(now time.Time, token Token) []Duty {
	r := o.runs[token]
	if r == nil || r.cancel {
		return nil
	}
	r.cancel = true
	if p := o.peers[r.Runner]; p != nil && p.claim != nil && len(p.claim.assigned) == 0 {
		return o.answer(now, p, true)
	}
	return nil
}

// Abandon gives up an assignment: it is lost now, because a person says so. Its outcome is fenced, unless it is
// committed already; the caller knows that.
func (o *Owner) Abandon(token Token, by string) []Duty {
	r := o.runs[token]
	if r == nil {
		return nil
	}
	o.drop(token)
	return []Duty{{Kind: DutyLost, Token: token, Runner: r.Runner, Why: "abandoned by " + by + "; it may have begun"}}
}

// Tick does what is due at a time.
func (o *Owner) Tick(now time.Time) (duties []Duty) {
	for _, name := range sorted(o.asking) {
		if p := o.asking[name]; !now.Before(p.claim.until) {
			duties = append(duties, o.answer(now, p, true)...)
		}
	}
	for _, name := range sorted(o.of) {
		if all := o.of[name]; !now.Before(all.next) {
			duties = append(duties, o.checkAll(now, all)...)
		}
	}
	return duties
}

// checkAll does what is due for the assignments of a runner.
func (o *Owner) checkAll(now time.Time, all *assigned) (duties []Duty) {
	for _, token := range sorted(all.runs) {
		duties = append(duties, o.check(now, all.runs[token])...)
	}
	all.next = now.Add(o.o.Unreachable)
	for _, r := range all.runs {
		all.sooner(o.due(r))
	}
	return duties
}

// due returns when check may have something to do for an assignment. What changes that says so to its runner.
func (o *Owner) due(r *run) time.Time {
	at := r.lost
	sooner := func(t time.Time) {
		if t.Before(at) {
			at = t
		}
	}
	switch {
	case r.settles:
		return at
	case !r.away:
		sooner(r.lease)
	case !r.Deadline.IsZero():
		sooner(r.Deadline.Add(Margin(o.o.Lease)))
	}
	if p := o.peers[r.Runner]; !r.Listed && p != nil && p.claim != nil && r.of(p) {
		sooner(r.at.Add(VoidAfter))
	}
	return at
}

// check does what is due for an open assignment.
func (o *Owner) check(now time.Time, r *run) []Duty {
	duty := Duty{Token: r.Token, Runner: r.Runner}
	switch {
	case r.settles:
		return nil
	case !now.Before(r.lost), r.orphan && !r.Idempotent:
		o.drop(r.Token)
		duty.Kind, duty.Why = DutyLost, fmt.Sprintf("runner %s has not reported for %s, or was removed", r.Runner, o.o.Unreachable)
	case r.away && !r.Deadline.IsZero() && now.After(r.Deadline.Add(Margin(o.o.Lease))):
		o.drop(r.Token)
		duty.Kind, duty.Why = DutyLost, fmt.Sprintf("its deadline has passed, and runner %s has not reported since", r.Runner)
	case !now.Before(r.lease) && (r.Idempotent || o.broken == requeueAtLease):
		o.drop(r.Token)
		duty.Kind, duty.Why = DutyRepeat, fmt.Sprintf("runner %s has not reported for %s", r.Runner, o.o.Lease)
	case !now.Before(r.lease) && !r.away:
		r.away = true
		duty.Kind, duty.Why = DutyUnreachable, fmt.Sprintf("runner %s has not reported for %s", r.Runner, o.o.Lease)
	default:
		return o.hurry(now, r)
	}
	return []Duty{duty}
}

// hurry answers the pending claim of a runner that is to void a token, so that it learns it now.
func (o *Owner) hurry(now time.Time, r *run) []Duty {
	p := o.peers[r.Runner]
	if !o.voids(now, r) || p == nil || p.claim == nil || len(p.claim.assigned) > 0 || !r.of(p) {
		return nil
	}
	return o.answer(now, p, true)
}

// voids reports whether an assignment is to be voided.
func (o *Owner) voids(now time.Time, r *run) bool {
	return !r.Listed && !r.settles && !now.Before(r.at.Add(VoidAfter))
}

// Close answers all pending claims: the owner stops.
func (o *Owner) Close(now time.Time) (duties []Duty) {
	for _, name := range sorted(o.asking) {
		duties = append(duties, o.answer(now, o.asking[name], true)...)
	}
	return duties
}

// Assigned returns an open assignment.
func (o *Owner) Assigned(token Token) (Assignment, bool) {
	if r := o.runs[token]; r != nil {
		return r.Assignment, true
	}
	return Assignment{}, false
}
