package core

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Answer records the decision of a person about the start or the answer of a task. An
// approval covers exactly the content with its Digest.
type Answer struct {
	Task     int64
	Seen     Seen
	Decision task.Decision // Approved or Denied
	Person   Person
	Note     string
	Digest   string          // of the content that the approver saw
	Level    task.ProofLevel // what the person's proof shows
	Needed   task.ProofLevel // the least level that policy accepts for the task
	Unproven string          // why that proof doesn't count; "" if it does
	Request  envelope.Task
	Verdict  task.Verdict // on a start now; zero for a task in review
	Result   []byte       // the answer in review; nil otherwise
}

func (c *Answer) decide(d *decision) error {
	t, err := d.state.find(c.Task, c.Seen)
	if err != nil {
		return err
	}
	question := t.question()
	if t.State == task.Running {
		question = t.callQuestion(c.Digest)
	}
	if question == nil {
		return StateErrorOf(t.Task)
	}
	if why := cmp.Or(c.Person.Forbidden(t.Task, question.Approver), c.Unproven, unproven(c.Level, c.Needed), unconfirmed(c.Level, c.Person, t.Task)); why != "" {
		d.show(t, task.KindApprovalRefused, map[string]any{"by": c.Person.String(), "uid": c.Person.UID, "reason": why})
		return &ForbiddenError{why}
	}
	switch {
	case expired(question, d.now):
		return ErrTooLate
	case question.Digest != c.Digest:
		return ErrChanged
	case t.State == task.Held && WantsApproval(c.Verdict.Hold) && !matches(question, c.Verdict):
		return &ChangedError{whyChanged(question, c.Verdict)}
	}
	c.record(d, t, question)
	return nil
}

// record records the decision and moves the task.
func (c *Answer) record(d *decision, t *Task, question *task.Consent) {
	by := By{c.Person.Name(question.Approver), c.Note}
	decided := *question
	decided.Decision, decided.Decided, decided.Decider, decided.Note, decided.Proof = c.Decision, d.now, by.Who, c.Note, c.Person.Proof
	decided.Expires, decided.Proof.Level = Earliest(d.expiry(), c.Person.Proof.Expires), c.Level
	data := with(consentData(question), "by", by.Who)
	if c.Level > task.ProofNone {
		data["proof"] = c.Level.String()
	}
	if c.Person.Proof.Key != "" {
		data["key"] = c.Person.Proof.Key
	}
	if c.Person.Requested(t.Task) {
		data["self"] = true // the person requested the task too
	}
	if c.Note != "" {
		data["note"] = c.Note
	}
	kind := task.KindApprovalApproved
	if c.Decision == task.Denied {
		kind = task.KindApprovalDenied
	}
	d.add(t, &Concluded{From: task.Undecided, Consent: decided}, kind, data)
	switch {
	case t.State == task.Running: // its agent gets the answer
		d.markCalls(t, t.asksBeside(question.Digest))
	case t.State == task.Review && c.Decision == task.Approved:
		d.add(t, moved(t, task.Change{To: task.Done}), "", nil)
	case t.State == task.Review:
		d.withhold(t, c.Request, c.Result, envelope.ApprovalDenied, "denied by "+by.String())
	case c.Decision == task.Denied:
		d.reject(t, c.Request, refused(envelope.ApprovalDenied, "denied by "+by.String(), c.Verdict.Levels))
	default:
		rest := slices.DeleteFunc(slices.Clone(t.Reasons), func(r task.Reason) bool { return r == task.Approval })
		d.add(t, moved(t, task.Change{To: task.Held, Reasons: rest, Until: d.now}), "", nil) // the remaining reasons are judged at once
	}
}

// ReviewDue ends a review without a decision in time.
type ReviewDue struct {
	Task    int64
	Request envelope.Task
	Result  []byte // the answer in review
}

func (c *ReviewDue) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || t.State != task.Review {
		return ErrStale
	}
	question := t.question()
	if question == nil || !expired(question, d.now) { // the time may have been the limit of an overseer
		return ErrStale
	}
	d.conclude(t, question, task.Expired, "nobody decided in time")
	d.withhold(t, c.Request, c.Result, envelope.ApprovalExpired, undecided(question))
	return nil
}

// withhold ends a task in review without showing its answer.
func (d *decision) withhold(t *Task, request envelope.Task, answer []byte, kind envelope.Kind, why string) {
	change := task.Change{To: task.Done, Status: envelope.Failed, Kind: kind, Result: d.withheld(request, answer, envelope.Failed, kind, why)}
	d.add(t, moved(t, change), "", nil)
}

// question returns the open approval request of a task; nil for none.
func (t *Task) question() *task.Consent {
	asked := t.Start
	if t.State == task.Review {
		asked = t.Show
	}
	if !isOpen(asked) {
		return nil
	}
	return asked
}

func (t *Task) setConsent(c *task.Consent) {
	switch c.Stage {
	case envelope.ApprovalPost:
		t.Show = c
	case envelope.ApprovalTool:
		if at := slices.IndexFunc(t.Calls, func(asked *task.Consent) bool { return asked.Digest == c.Digest }); at >= 0 {
			t.Calls[at] = c
		} else {
			t.Calls = append(t.Calls, c)
		}
	default:
		t.Start = c
	}
}

func isOpen(c *task.Consent) bool { return c != nil && c.Decision == task.Undecided }

func isGiven(c *task.Consent) bool { return c != nil && c.Decision == task.Approved }

// Covers reports whether a given approval covers the verdict; a nil approval doesn't, and
// neither does one whose proof doesn't hold. Once an attempt has started under an approval, it
// covers all further attempts and doesn't expire.
func Covers(c *task.Consent, v task.Verdict, began bool, now time.Time) bool {
	return isGiven(c) && matches(c, v) && whyUnproven(c, v) == "" && (began || !expired(c, now))
}

// whyUnproven says why a decision isn't proven as a verdict requires; "" if it is.
func whyUnproven(c *task.Consent, v task.Verdict) string {
	return cmp.Or(c.Proof.Unproven, unproven(c.Proof.Level, v.Terms.Proof))
}

// unproven says that a level is less than what policy needs; "" if it isn't.
func unproven(has, needs task.ProofLevel) string {
	if has >= needs {
		return ""
	}
	return fmt.Sprintf("policy.proof needs an approval with proof %s, and this one has %s", needs, has)
}

// unconfirmed says that a person has to confirm a decision about a task that the person
// requested; "" if the proof is enough.
func unconfirmed(has task.ProofLevel, p Person, t task.Task) string {
	if has >= p.Needs(t) {
		return ""
	}
	return fmt.Sprintf("%s requested this task; the decision has to be confirmed at a terminal (approval.self is confirm)", t.Requester)
}

// matches reports whether an approval is for the content and the approver of a verdict.
func matches(c *task.Consent, v task.Verdict) bool {
	return c.Digest == v.Digest && c.Approver == v.Approver
}

// expired reports whether an approval or a request for one has expired.
func expired(c *task.Consent, now time.Time) bool { return IsPast(c.Expires, now) }

// undecided returns the message for a decision that came too late (AINL-48).
func undecided(c *task.Consent) string {
	why := "nobody approved it"
	if c.Approver != "" {
		why = c.Approver + " did not approve it"
	}
	if !c.Expires.IsZero() {
		why += " by " + c.Expires.Format(time.RFC3339)
	}
	return why
}

// decisionDue returns the time limit for a decision about a start: the time limit of a
// question, but not later than the deadline of the task.
func (d *decision) decisionDue(t task.Task) time.Time { return Earliest(d.expiry(), t.Deadline) }

// askStart requests the approval of a start.
func (d *decision) askStart(t *Task, v task.Verdict) {
	d.ask(t, task.Consent{
		Stage: envelope.ApprovalPre, Digest: v.Digest, Plan: v.Plan, Approver: v.Approver,
		Asked: d.now, Expires: d.decisionDue(t.Task),
	})
}

// askShow requests the approval of an answer. The deadline of the task limits its run only;
// a review may last longer.
func (d *decision) askShow(t *Task, terms task.Terms, result []byte, until time.Time) {
	sum := sha256.Sum256(result)
	d.ask(t, task.Consent{
		Stage: envelope.ApprovalPost, Digest: hex.EncodeToString(sum[:]), Approver: terms.Approver,
		Asked: d.now, Expires: until,
	})
}

func (d *decision) ask(t *Task, c task.Consent) {
	c.Task = t.Seq
	data := consentData(&c)
	if c.Approver != "" {
		data["approver"] = c.Approver
	}
	if !c.Expires.IsZero() {
		data["until"] = formatTime(c.Expires)
	}
	d.add(t, &Asked{Consent: c}, task.KindApprovalAsked, data)
}

// conclude ends an approval that has expired or is void.
func (d *decision) conclude(t *Task, c *task.Consent, to task.Decision, why string) {
	ended := *c
	ended.Decision, ended.Decided, ended.Note = to, d.now, why
	kind := task.KindApprovalVoid
	if to == task.Expired {
		kind = task.KindApprovalExpired
	}
	d.add(t, &Concluded{From: c.Decision, Consent: ended}, kind, with(consentData(c), "reason", why))
}

// withdraw voids the open approval request of a task.
func (d *decision) withdraw(t *Task, why string) {
	if t.State != task.Held && t.State != task.Review {
		return
	}
	if question := t.question(); question != nil {
		d.conclude(t, question, task.Void, why)
	}
}

// consentData returns the event data that all events of an approval have.
func consentData(c *task.Consent) map[string]any {
	return map[string]any{"stage": c.Stage, "digest": c.Digest[:min(12, len(c.Digest))]}
}
