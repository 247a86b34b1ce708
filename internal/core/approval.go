package core

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// Answer is what a person decides about a task that waits for an approval: of its
// start, or of its answer. An approval holds for exactly what was asked about.
type Answer struct {
	Task     int64
	Seen     Seen
	Decision task.Decision // Approved or Denied
	Person   Person
	Note     string
	Digest   string // names what the approver was asked about when they decided
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
	if question == nil {
		return StateErrorOf(t.Task)
	}
	if why := c.Person.Forbidden(t.Task, question.Approver); why != "" {
		d.show(t, task.KindApprovalRefused, map[string]any{"by": c.Person.String(), "uid": c.Person.UID, "reason": why})
		return &ForbiddenError{why}
	}
	switch {
	case late(question, d.now):
		return ErrTooLate
	case question.Digest != c.Digest, t.State == task.Held && wantsApproval(c.Verdict.Hold) && !matches(question, c.Verdict):
		return ErrChanged
	}
	c.record(d, t, question)
	return nil
}

// record adds a decision, and takes the task to where it leads.
func (c *Answer) record(d *decision, t *Task, question *task.Consent) {
	by := By{c.Person.name(question.Approver), c.Note}
	decided := *question
	decided.Decision, decided.Decided, decided.Decider, decided.Note, decided.Expires = c.Decision, d.now, by.Who, c.Note, d.expiry()
	data := with(about(question), "by", by.Who)
	if c.Note != "" {
		data["note"] = c.Note
	}
	kind := task.KindApprovalApproved
	if c.Decision == task.Denied {
		kind = task.KindApprovalDenied
	}
	d.add(t, &Concluded{From: task.Undecided, Consent: decided}, kind, data)
	switch {
	case t.State == task.Review && c.Decision == task.Approved:
		d.add(t, moved(t, task.Change{To: task.Done}), "", nil)
	case t.State == task.Review:
		d.withhold(t, c.Request, c.Result, envelope.ApprovalDenied, "denied by "+by.String())
	case c.Decision == task.Denied:
		d.reject(t, c.Request, refused(envelope.ApprovalDenied, "denied by "+by.String(), c.Verdict.Levels))
	default:
		rest := slices.DeleteFunc(slices.Clone(t.Reasons), func(r task.Reason) bool { return r == task.Approval })
		d.add(t, moved(t, task.Change{To: task.Held, Reasons: rest, Until: d.now}), "", nil) // what is left is judged at once
	}
}

// ReviewDue ends a review in which nobody decided in time.
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
	if question == nil || !late(question, d.now) { // the time that is over may have been an overseer's
		return ErrStale
	}
	d.conclude(t, question, task.Expired, "nobody decided in time")
	d.withhold(t, c.Request, c.Result, envelope.ApprovalExpired, unheard(question))
	return nil
}

// withhold ends a task in review without its answer.
func (d *decision) withhold(t *Task, request envelope.Task, answer []byte, kind envelope.Kind, why string) {
	change := task.Change{To: task.Done, Status: envelope.Failed, Kind: kind, Result: Withheld(request, answer, envelope.Failed, kind, why)}
	d.add(t, moved(t, change), "", nil)
}

// question is what an approver is asked about a task now; nil for nothing.
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
	if c.Stage == envelope.ApprovalPost {
		t.Show = c
	} else {
		t.Start = c
	}
}

func isOpen(c *task.Consent) bool { return c != nil && c.Decision == task.Undecided }

func isGiven(c *task.Consent) bool { return c != nil && c.Decision == task.Approved }

// Covers reports whether an approval was given for what would happen now; a nil one
// wasn't. After an attempt was started under it, it covers all further ones, however
// late.
func Covers(c *task.Consent, v task.Verdict, began bool, now time.Time) bool {
	return isGiven(c) && matches(c, v) && (began || !late(c, now))
}

// matches reports whether an approver was asked about what would happen now.
func matches(c *task.Consent, v task.Verdict) bool {
	return c.Digest == v.Digest && c.Approver == v.Approver
}

// late reports whether the time of an approval is over.
func late(c *task.Consent, now time.Time) bool { return past(c.Expires, now) }

// unheard says that nobody decided in time (AINL-48).
func unheard(c *task.Consent) string {
	why := "nobody approved it"
	if c.Approver != "" {
		why = c.Approver + " did not approve it"
	}
	if !c.Expires.IsZero() {
		why += " by " + c.Expires.Format(time.RFC3339)
	}
	return why
}

// decisionDue is until when an approver can decide about the start of a task who is
// asked now: as long as a question stands, and not past the task's deadline.
func (d *decision) decisionDue(t task.Task) time.Time { return Earliest(d.expiry(), t.Deadline) }

// askStart asks for an approval of the start that a verdict wants.
func (d *decision) askStart(t *Task, v task.Verdict) {
	d.ask(t, task.Consent{
		Stage: envelope.ApprovalPre, Digest: v.Digest, Plan: v.Plan, Approver: v.Approver,
		Asked: d.now, Expires: d.decisionDue(t.Task),
	})
}

// askShow asks for an approval of an answer. The deadline of the task is for its run,
// and a review may outlive it.
func (d *decision) askShow(t *Task, terms task.Terms, result []byte, until time.Time) {
	sum := sha256.Sum256(result)
	d.ask(t, task.Consent{
		Stage: envelope.ApprovalPost, Digest: hex.EncodeToString(sum[:]), Approver: terms.Approver,
		Asked: d.now, Expires: until,
	})
}

func (d *decision) ask(t *Task, c task.Consent) {
	c.Task = t.Seq
	data := about(&c)
	if c.Approver != "" {
		data["approver"] = c.Approver
	}
	if !c.Expires.IsZero() {
		data["until"] = stamp(c.Expires)
	}
	d.add(t, &Asked{Consent: c}, task.KindApprovalAsked, data)
}

// conclude ends an approval without a person: it is too old, or void.
func (d *decision) conclude(t *Task, c *task.Consent, to task.Decision, why string) {
	ended := *c
	ended.Decision, ended.Decided, ended.Note = to, d.now, why
	kind := task.KindApprovalVoid
	if to == task.Expired {
		kind = task.KindApprovalExpired
	}
	d.add(t, &Concluded{From: c.Decision, Consent: ended}, kind, with(about(c), "reason", why))
}

// withdraw takes back what an approver was asked about a task, if it is open.
func (d *decision) withdraw(t *Task, why string) {
	if t.State != task.Held && t.State != task.Review {
		return
	}
	if question := t.question(); question != nil {
		d.conclude(t, question, task.Void, why)
	}
}

// about is what each event says about an approval.
func about(c *task.Consent) map[string]any {
	return map[string]any{"stage": c.Stage, "digest": c.Digest[:min(12, len(c.Digest))]}
}
