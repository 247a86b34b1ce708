package core_test

import (
	"fmt"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// The other parties of a world: operators, approvers, overseers and other programs.

func (w *world) changeRules() {
	w.rules++
	for _, t := range w.open() {
		if t.State == task.Held {
			w.judge(t)
		}
	}
}

// oversee decides as the overseer of an agent.
func (w *world) oversee(t *core.Task, n int) {
	switch n {
	case 0:
		w.do(&core.FailReview{Task: t.Seq, Attempt: t.Attempt, Kind: envelope.OversightRejected, Why: "made up", Request: w.seen(t).request(), Result: w.results[t.Seq]})
	case 1:
		w.allowed[t.Seq]++
		w.do(&core.SendBack{Task: t.Seq, Attempt: t.Attempt, By: "qa", Round: 1})
	default:
		if w.do(&core.PassReview{Task: t.Seq, Attempt: t.Attempt, By: "qa"}) {
			w.passed[t.Seq] = true
		}
	}
}

// program acts as a program that claims a task, renews its lease, or answers.
func (w *world) program(t *core.Task) {
	if t == nil || t.State != task.Waiting {
		return
	}
	token := []string{t.Token, "", "another"}[w.pick(3)]
	switch w.pick(3) {
	case 0:
		w.do(&core.Claim{Task: t.Seq, By: core.By{Who: "editor"}, Token: fmt.Sprintf("token %d", w.steps), Lasts: 20 * time.Second, Ended: w.pick(5) == 0})
	case 1:
		entitled := t.ClaimedAt(w.now) && token == w.tokens[t.Seq]
		if w.do(&core.Renew{Task: t.Seq, Attempt: t.Attempt, Token: token, Lasts: 20 * time.Second}) && !entitled {
			w.fail("the lease of %s is renewed by %q, and %q has it", t.ID, token, w.tokens[t.Seq])
		}
		w.leased[t.Seq] = t.Until
	case 2:
		if core.CheckToken(t, t.Attempt, token, w.now) != nil {
			return
		}
		if t.ClaimedAt(w.now) && token != w.tokens[t.Seq] {
			w.fail("%s is answered by %q, and %q has the lease", t.ID, token, w.tokens[t.Seq])
		}
		w.finish(t, task.Run{Task: t.Seq, Attempt: t.Attempt, Started: w.now, Finished: w.now}, envelope.OK, "", fmt.Appendf(nil, "fetched %d", t.Seq))
	}
}

// person acts as a person at the command line.
func (w *world) person(t *core.Task) {
	if t == nil {
		return
	}
	by, request, seen := core.By{Who: "root"}, w.seen(t).request(), core.See(t.Task)
	switch w.pick(8) {
	case 0, 1, 2:
		c := &core.Answer{Task: t.Seq, Seen: seen, Decision: task.Approved, Person: w.approver(), Digest: digestAsked(t), Request: request, Verdict: w.verdict(w.seen(t)), Result: w.results[t.Seq]}
		if w.pick(4) == 0 {
			c.Decision = task.Denied
		}
		w.asked[c] = digestAsked(t)
		if w.pick(2) == 0 { // they take their time
			w.stale = append(w.stale, c)
			return
		}
		w.do(c)
	case 3:
		w.later(&core.Hold{Task: t.Seq, Seen: seen, By: by})
	case 4, 5:
		w.release(t)
	case 6:
		if t.State == task.Running {
			if r := w.runs[task.RunName{Task: t.Seq, Attempt: t.Attempt}]; r != nil && !r.ended {
				r.end = true
			}
			return
		}
		w.later(&core.Cancel{Task: t.Seq, Seen: seen, By: by, Request: request, Result: w.results[t.Seq]})
	case 7:
		if w.seen(t).follows() {
			return // the engine refuses it: ErrFollower
		}
		if events := w.decide(&core.Resubmit{Task: t.Seq, By: by, Verdict: w.admit(w.seen(t), 0)}); len(events) > 0 {
			core.Number(events, w.next())
			w.commit(events, w.offset)
		}
	}
}

func digestAsked(t *core.Task) string {
	switch {
	case t.State == task.Running && len(openCalls(t)) > 0:
		return openCalls(t)[0]
	case t.State == task.Review && t.Show != nil:
		return t.Show.Digest
	case t.Start != nil:
		return t.Start.Digest
	}
	return ""
}

func (w *world) approver() core.Person {
	if w.pick(4) == 0 {
		return core.Person{Names: []string{"ann"}} // the requester of all tasks
	}
	return core.Person{Names: []string{"bob"}}
}

// release releases a task, or has its answer read again.
func (w *world) release(t *core.Task) {
	unread := core.Unread(t.Task)
	w.do(&core.Release{Task: t.Seq, Seen: core.See(t.Task), By: core.By{Who: "root"}})
	if now := w.state.Task(t.Seq); unread && now != nil && core.Unread(now.Task) && !now.Until.IsZero() {
		w.do(&core.Reread{Task: now.Seq, Attempt: now.Attempt})
		if name := (task.RunName{Task: now.Seq, Attempt: now.Attempt}); w.state.Task(t.Seq).State == task.Running && w.runs[name] != nil {
			w.runs[name].again = false
			w.received(name)
		}
	}
}

func (w *world) putFile(t *core.Task) {
	if t == nil || t.State == task.Done || w.files[t.ID] != (resultFile{}) {
		return
	}
	w.files[t.ID] = resultFile{body: []string{"placed", "bad"}[w.pick(2)]}
}
