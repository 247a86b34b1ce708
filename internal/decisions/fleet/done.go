package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Ruling is what the owner does with an outcome.
type Ruling int

// The rulings.
const (
	RuleAnswer Ruling = iota // nothing but answer
	RuleCommit               // commit the outcome; then call Settled, and answer
	RuleFence                // keep the outcome for review; then answer. It changes no result
)

// Done takes an outcome. The answer is for RuleAnswer and RuleFence.
func (o *Owner) Done(m Done) (Ruling, DoneReply) {
	reply := DoneReply{Epoch: o.epoch, Token: m.Token}
	r := o.runs[m.Token]
	switch {
	case r != nil && (r.Runner != m.Runner || r.Incarnation != m.Incarnation):
		reply.Refused = "the run is not one of this runner"
		return RuleAnswer, reply
	case r != nil && r.settles:
		reply.Later = true
		return RuleAnswer, reply
	case r != nil:
		r.settles = true
		return RuleCommit, reply
	}
	switch o.o.Past(m.Token, m.Runner) {
	case PastSettled:
		reply.Settled = true
		return RuleAnswer, reply
	case PastFenced:
		reply.Fenced = "it is kept for review"
		return RuleAnswer, reply
	case PastUnread, PastOpen:
		reply.Later = true
		return RuleAnswer, reply
	case PastUnknown:
		reply.Refused = "the owner doesn't know the run"
		return RuleAnswer, reply
	}
	reply.Fenced = "the run was given up before its answer came; the answer is kept for review"
	return RuleFence, reply
}

// Settled takes that the outcome of an assignment is committed, and returns the answer.
func (o *Owner) Settled(token Token) DoneReply {
	o.drop(token)
	return DoneReply{Epoch: o.epoch, Token: token, Settled: true}
}

// Unsettled takes that the outcome of an assignment couldn't be committed, or that its files are not there
// yet. The runner sends it again.
func (o *Owner) Unsettled(token Token) DoneReply {
	if r := o.runs[token]; r != nil {
		r.settles = false
		o.of[r.Runner].next = time.Time{}
	}
	return DoneReply{Epoch: o.epoch, Token: token, Later: true}
}

// A Status is the state of a runner.
type Status string

// The statuses.
const (
	Ready       Status = "ready"
	Busy        Status = "busy" // each slot has a run
	Draining    Status = "draining"
	Unreachable Status = "unreachable"
	Unavailable Status = "unavailable"
)

// A State is what commands show of a runner.
type State struct {
	Known
	Status   Status
	Reason   string    // why it isn't ready
	Next     string    // what a person can do
	Seen     time.Time // zero: not since the owner began
	ClockOff time.Duration
	Runs     []Assignment
}

// States returns the states of all runners, by name.
func (o *Owner) States(now time.Time) []State {
	var all []State
	for _, name := range sorted(o.peers) {
		p := o.peers[name]
		s := State{Known: p.Known, Seen: p.seen, ClockOff: p.off, Status: Ready}
		for _, token := range sorted(o.runsOf(name)) {
			if r := o.runs[token]; r.of(p) {
				s.Runs = append(s.Runs, r.Assignment)
			}
		}
		s.Status, s.Reason, s.Next = o.status(now, p, len(s.Runs))
		all = append(all, s)
	}
	return all
}

// status returns the status of a runner, why it isn't ready, and what to do.
func (o *Owner) status(now time.Time, p *peer, runs int) (is Status, reason, next string) {
	switch silent := now.Sub(p.seen); {
	case p.refused != "":
		return Unavailable, p.refused, "if this machine is to have the name: mailboxd runners remove " + p.Runner
	case p.seen.IsZero():
		return Unreachable, "it has not reported since the owner began", "start it: mailboxd runner --connect URL"
	case silent > o.o.Lease:
		return Unreachable, fmt.Sprintf("it has not reported for %s", silent.Round(time.Second)), "look at the machine and its network"
	case p.Drained:
		return Draining, p.excuse(), "mailboxd runners resume " + p.Runner
	case p.twin != "":
		return Unavailable, p.excuse(),
			fmt.Sprintf("end the second one, and wait %s, or give it another name: mailboxd-hub enroll NAME", 2*o.o.Lease)
	case p.excuse() != "":
		return Unavailable, p.excuse(), "see the reason; it is served again by itself when that has changed"
	case p.Offers.Slots > 0 && runs >= p.Offers.Slots:
		return Busy, "", ""
	}
	return Ready, "", ""
}

// sorted returns the keys of a map in order, so that the same calls have the same duties.
func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
