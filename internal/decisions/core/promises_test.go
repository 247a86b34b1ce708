package core_test

import (
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// moves are the legal steps of a task.
var moves = map[task.State][]task.State{
	task.Received: {task.Received, task.Held, task.Queued, task.Done},
	task.Held:     {task.Held, task.Queued, task.Running, task.Review, task.Done},
	task.Queued:   {task.Held, task.Queued, task.Running, task.Waiting, task.Review, task.Done},
	task.Running:  {task.Running, task.Held, task.Queued, task.Review, task.Done},
	task.Waiting:  {task.Held, task.Waiting, task.Review, task.Done},
	task.Review:   {task.Done, task.Queued},
}

// check checks one event against the promises, before it is applied.
func (w *world) check(e core.Event) {
	t := w.state.Task(e.Task)
	w.checkRoute(t, e)
	switch c := e.Change.(type) {
	case *core.Added:
		w.requests[e.Task] = w.lineOf(c.Task)
		w.checkRevision(c.Task)
		if c.Task.State == task.Received {
			return
		}
		for _, other := range w.state.Revisions(c.Task.ID) {
			if core.InHand(other.Task, w.now) {
				w.fail("revision %d of %s is %s, and revision %d is %s", c.Task.Revision, c.Task.ID, c.Task.State, other.Revision, other.State)
			}
		}
	case *core.Moved:
		w.checkMove(t, c, e)
	case *core.Concluded:
		w.checkDecision(t, c)
	case *core.RunIntended:
		if w.runs[task.RunName{Task: e.Task, Attempt: c.Run.Attempt}] != nil {
			w.fail("attempt %d of %s is intended twice", c.Run.Attempt, t.ID)
		}
		if began := w.executions(t.ID, t.Seq); began > 0 && w.seen(t).agent == plain && !t.Began {
			w.fail("%s runs again, and the state doesn't know that it ran", t.ID)
		}
		if w.seen(t).follows() {
			w.fail("%s runs, and has the outcome of another task", t.ID)
		}
		w.checkIntent(t, c.Run)
	case *core.Leased:
		claim := w.doing.(*core.Claim)
		if w.now.Before(w.leased[e.Task]) && !claim.Ended && w.claims(t) {
			w.fail("%s is claimed by %q, and %q has it until %v", t.ID, c.Token, w.tokens[e.Task], w.leased[e.Task])
		}
		w.tokens[e.Task], w.leased[e.Task] = c.Token, w.now.Add(claim.Lasts)
	}
}

// lineOf is the line of a revision: the latest that was read, or that of the revision
// before when an operator resubmits it.
func (w *world) lineOf(t task.Task) line {
	return line{id: t.ID, agent: t.Agent, routed: isRouted(t), content: int(t.Hash[len(t.Hash)-1] - '0'), parent: t.Parent}
}

// checkRevision wants revisions in order, and the hold of an operator to outlast them.
func (w *world) checkRevision(t task.Task) {
	last := w.state.Latest(t.ID)
	switch {
	case last == nil && t.Revision != 1:
		w.fail("the first revision of %s is %d", t.ID, t.Revision)
	case last != nil && t.Revision != last.Revision+1:
		w.fail("revision %d of %s follows %d", t.Revision, t.ID, last.Revision)
	case last != nil && last.State == task.Done && !t.Replaces:
		w.fail("revision %d of %s doesn't say that it replaces a result", t.Revision, t.ID)
	case last != nil && w.heldByOperator(last) && !slices.Contains(t.Reasons, task.Operator):
		w.fail("revision %d of %s lacks the hold of the operator, and revision %d has it", t.Revision, t.ID, last.Revision)
	}
}

// heldByOperator reports whether an operator holds a revision, and the next one, which is being
// accepted. One that is refused at once isn't held: no earlier revision is in hand, for which its
// refusal would wait.
func (w *world) heldByOperator(last *core.Task) bool {
	accept, ok := w.doing.(*core.Accept)
	if !ok || last.State != task.Held && last.State != task.Received || !slices.Contains(last.Reasons, task.Operator) {
		return false
	}
	waits := slices.ContainsFunc(w.state.Revisions(last.ID), func(t *core.Task) bool { return core.InHand(t.Task, w.now) })
	return accept.Verdict.Admit || waits
}

// untilReleased are the holds that only a person ends.
var untilReleased = []task.Reason{task.Operator, task.Recovered, task.AuthRequired, task.RunDirectory}

// checkMove wants legal steps, and one end of each revision.
func (w *world) checkMove(t *core.Task, c *core.Moved, e core.Event) {
	if t == nil { // the end of a revision that the same group adds
		w.end(e.Task, c)
		return
	}
	if t.State != c.From || t.Attempt != c.FromAttempt {
		// An earlier event of the same group has moved it.
		return
	}
	if !slices.Contains(moves[t.State], c.To) {
		w.fail("%s goes from %s to %s", t.ID, t.State, c.To)
	}
	if t.State == task.Held && c.To == task.Queued && slices.ContainsFunc(t.Reasons, func(r task.Reason) bool { return slices.Contains(untilReleased, r) }) {
		w.fail("%s is queued, and nobody has released it: %v", t.ID, t.Reasons)
	}
	if t.State == task.Held && c.To == task.Queued && slices.Contains(t.Reasons, task.ProviderLimit) && w.now.Before(t.Until) {
		w.fail("%s is queued before the limit of its provider ends, and nobody has released it", t.ID)
	}
	if c.To == task.Running && c.From == task.Held && !core.Unread(t.Task) {
		w.fail("%s runs from a hold", t.ID)
	}
	if c.Result != nil {
		w.results[e.Task] = c.Result
	}
	if c.To == task.Review && !slices.Contains([]string{asksPost, overseen}, w.seen(t).agent) {
		w.fail("%s is in review, and needs no approval", t.ID)
	}
	if c.To == task.Done {
		w.end(e.Task, c)
		if c.Kind == envelope.BudgetExceeded {
			w.checkExcess(t)
		}
	}
}

// checkVouched wants an event for readers beside each new result: the event has the digest of the result in the ledger.
func (w *world) checkVouched(events []core.Event, e core.Event) {
	moved, ok := e.Change.(*core.Moved)
	shown := func(other core.Event) bool { return other.Task == e.Task && other.Kind != "" }
	if ok && moved.Result != nil && !slices.ContainsFunc(events, shown) {
		w.fail("task %d gets a result, and readers see no event about it", e.Task)
	}
}

func (w *world) end(seq int64, c *core.Moved) {
	if c.To != task.Done {
		return
	}
	if w.shown[seq]++; w.shown[seq] > 1 {
		w.fail("revision %d ends twice", seq)
	}
	if c.Result != nil {
		w.results[seq] = c.Result
	}
}

// checkDecision records the content that a person approved, and checks that the person is not
// the requester.
func (w *world) checkDecision(t *core.Task, c *core.Concluded) {
	if c.Consent.Decision != task.Approved {
		return
	}
	if c.Consent.Decider == "ann" || c.Consent.Decider == "" {
		w.fail("%s is approved by %q, who asked for it", t.ID, c.Consent.Decider)
	}
	if !c.Consent.Asked.IsZero() && w.now.Sub(c.Consent.Asked) >= w.cfg.ApprovalTTL {
		w.fail("%s is approved after %v", t.ID, w.now.Sub(c.Consent.Asked))
	}
	if answer := w.doing.(*core.Answer); w.asked[answer] != "" && w.asked[answer] != c.Consent.Digest {
		w.fail("%s is approved as %q, and the person has seen %q", t.ID, c.Consent.Digest, w.asked[answer])
	}
	w.approved[agreed(t.Seq, c.Consent.Digest)] = true
}

// claims reports whether the lease of a task is of its current attempt.
func (w *world) claims(t *core.Task) bool { return t.Token != "" && t.Token == w.tokens[t.Seq] }

// executions counts the runs of a revision that began.
func (w *world) executions(_ envelope.ID, seq int64) (n int) {
	for name := range w.runs {
		if name.Task == seq {
			n++
		}
	}
	return n
}

// promises checks the state for the promises that always hold.
func (w *world) promises() {
	w.solvent()
	for _, t := range w.open() {
		w.checkCalls(t)
		w.checkDue(t)
		switch {
		case t.State == task.Held && len(t.Reasons) == 0 && t.Until.IsZero():
			w.fail("%s is held for no reason, and without an end", t.ID)
		case (t.State == task.Running || t.State == task.Waiting) && (t.Run == nil || t.Run.Attempt != t.Attempt || t.Run.Settled):
			w.fail("%s is %s in attempt %d, and its run is %+v", t.ID, t.State, t.Attempt, t.Run)
		case t.State == task.Review && open(t.Show) == nil && w.seen(t).agent != overseen:
			w.fail("%s is in review, and nobody is asked", t.ID)
		case t.State == task.Held && slices.Contains(t.Reasons, task.Approval) && open(t.Start) == nil:
			w.fail("%s waits for an approval, and nobody is asked", t.ID)
		case t.State == task.Done && (open(t.Start) != nil || open(t.Show) != nil):
			w.fail("%s is over, and somebody is still asked about it", t.ID)
		case t.State == task.Done && t.Run != nil && t.Run.Attempt == t.Attempt && !t.Run.Settled:
			w.fail("%s is over, and its run isn't: %+v", t.ID, t.Run)
		}
	}
}

// checkDue wants each task to be looked at when its time comes, but one in a pause, whose end the engine waits for.
func (w *world) checkDue(t *core.Task) {
	var at time.Time
	switch {
	case t.State == task.Queued, conversation.Follows(t.Task):
		at = t.Deadline
	case t.State == task.Waiting:
		at = core.Earliest(t.Until, t.Run.Terms.Deadline)
	case t.State == task.Review, t.State == task.Held && !t.InBackoff():
		at = t.Until
	}
	if at.IsZero() != t.Due.IsZero() && !t.WaitsForBudget() || t.Due.After(at) && !at.IsZero() {
		w.fail("%s is %s %v until %v, and due at %v", t.ID, t.State, t.Reasons, t.Until, t.Due)
	}
	if midnight := w.now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour); t.WaitsForBudget() && (t.Due.IsZero() || t.Due.After(midnight)) {
		w.fail("%s waits for budget, and is due at %v", t.ID, t.Due)
	}
}

func open(c *task.Consent) *task.Consent {
	if c == nil || c.Decision != task.Undecided {
		return nil
	}
	return c
}

// settle lets everything end, without crashes, and checks the promises for the final state.
func (w *world) settle() {
	w.pick = func(n int) int { return n - 1 } // no crash, no fault, no delay
	w.rules -= w.rules % 5                    // what was refused for a while is allowed
	for range 60 {
		w.now = w.now.Add(35 * time.Second)
		w.stale = nil
		w.takeAll()
		for _, t := range w.open() {
			if t = w.state.Task(t.Seq); w.err == nil {
				w.further(t)
			}
		}
		for len(w.starts) > 0 && w.err == nil {
			w.begin()
		}
		if w.err != nil || len(w.open()) == 0 && w.offset == len(w.lines) {
			break
		}
	}
	if w.err == nil {
		w.checkEnd()
	}
}

func (w *world) takeAll() {
	for w.offset < len(w.lines) && w.err == nil {
		w.takeLines()
	}
}

// further does the next step that a person or program would do for a task.
func (w *world) further(t *core.Task) {
	by, seen, request := core.By{Who: "root"}, core.See(t.Task), w.seen(t).request()
	bob := core.Person{Names: []string{"bob"}}
	switch {
	case t.State == task.Held && slices.ContainsFunc(t.Reasons, core.Releasable):
		w.do(&core.Release{Task: t.Seq, Seen: seen, By: by})
	case t.State == task.Received && len(core.Lasting(t.Reasons)) > 0:
		w.do(&core.Release{Task: t.Seq, Seen: seen, By: by})
	case core.Unread(t.Task):
		w.release(t)
	case conversation.Suspended(t.Task):
		w.do(&core.Wake{Task: t.Seq, Attempt: t.Attempt})
	case t.State == task.Review && w.seen(t).agent == overseen:
		w.oversee(t, 2)
	case t.State == task.Held && slices.Contains(t.Reasons, task.Approval):
		w.do(&core.Answer{Task: t.Seq, Seen: seen, Decision: task.Approved, Person: bob, Digest: digestAsked(t), Request: request, Verdict: w.verdict(w.seen(t))})
		w.look(w.state.Task(t.Seq))
		w.look(w.state.Task(t.Seq))
	case t.State == task.Review:
		w.do(&core.Answer{Task: t.Seq, Seen: seen, Decision: task.Approved, Person: bob, Digest: digestAsked(t), Request: request, Result: w.results[t.Seq]})
		w.look(w.state.Task(t.Seq))
	case t.State == task.Waiting:
		w.look(t)
		if t.State == task.Waiting {
			w.finish(t, task.Run{Task: t.Seq, Attempt: t.Attempt, Started: w.now, Finished: w.now}, envelope.OK, "", []byte("fetched"))
		}
	case t.State == task.Running:
		if r := w.runs[task.RunName{Task: t.Seq, Attempt: t.Attempt}]; r != nil && !r.ended {
			r.ended, r.ok = true, !r.end
			w.received(task.RunName{Task: t.Seq, Attempt: t.Attempt})
			return
		}
		w.look(t)
	default:
		w.look(t)
	}
}

// checkEnd wants one result for each id, of its latest revision.
func (w *world) checkEnd() {
	if left := w.open(); len(left) > 0 {
		w.fail("%d tasks never end, the first is %+v", len(left), left[0].Task)
		return
	}
	contents, ends := map[envelope.ID]string{}, map[envelope.ID]bool{}
	for _, l := range w.lines {
		contents[l.id] = l.hash()
	}
	for id := range contents {
		last := w.state.Latest(id)
		file, there := w.files[id]
		ends[id] = there
		switch {
		case last == nil:
			w.fail("%s was asked for, and never accepted", id)
		case !there:
			w.fail("%s has no result", id)
		case file.seq != last.Seq && file.seq != 0:
			w.fail("%s has the result of %d, and its latest revision is %d", id, file.seq, last.Seq)
		case last.Hash != contents[id]:
			w.fail("the latest revision of %s is %s, and %s was asked for last", id, last.Hash, contents[id])
		}
	}
	for name, r := range w.booked {
		if !r.Settled {
			w.fail("%v is over, and %d are reserved for it", name, held(r))
		}
	}
	for name, r := range w.runs {
		if !r.ended && !strings.HasPrefix(string(r.id), "t") {
			w.fail("%v goes on", name)
		}
	}
}
