package core

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// CallContent returns what a person approves of a call, as an object, and its digest. It names the
// task, the revision and the attempt, so that an approval covers nothing else.
func CallContent(row task.Task, c task.Call) (content jsontext.Value, digest string, err error) {
	content, err = json.Marshal(struct {
		Task     envelope.ID `json:"task"`
		Revision int         `json:"revision"`
		Attempt  int         `json:"attempt"`
		Call     task.Call   `json:"call"`
	}{row.ID, row.Revision, row.Attempt, c}, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	sum := sha256.Sum256(content)
	return content, hex.EncodeToString(sum[:]), err
}

// AskCall asks a person about a call of a running task. It does nothing if the question was asked
// before.
type AskCall struct {
	Task    int64
	Attempt int
	Digest  string // of Content
	Content jsontext.Value
	Terms   task.Terms // of the run
}

func (c *AskCall) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || t.State != task.Running || t.Attempt != c.Attempt {
		return ErrStale
	}
	for _, asked := range t.Calls {
		if asked.Digest == c.Digest {
			return nil
		}
	}
	question := task.Consent{Stage: envelope.ApprovalTool, Digest: c.Digest, Plan: c.Content, Approver: c.Terms.Approver, Asked: d.now}
	if rules := c.Terms.Calls; rules != nil && rules.Timeout > 0 {
		question.Expires = d.now.Add(rules.Timeout)
	}
	d.ask(t, question)
	d.markCalls(t, true)
	return nil
}

// markCalls gives a running task the reason Approval as long as a person has to decide about a call.
func (d *decision) markCalls(t *Task, waits bool) {
	d.mark(t, task.Approval, waits, "", nil)
}

// mark gives a running task a reason, or takes it away. The event is only for a change.
func (d *decision) mark(t *Task, reason task.Reason, has bool, kind task.Kind, data any) {
	reasons := t.Reasons
	if i := slices.Index(reasons, reason); i >= 0 {
		reasons = slices.Delete(slices.Clone(reasons), i, i+1)
	}
	if has {
		reasons = append(slices.Clone(reasons), reason)
	}
	if len(reasons) != len(t.Reasons) {
		d.add(t, moved(t, task.Change{To: task.Running, Reasons: reasons}), kind, data)
	}
}

// asksBeside reports whether a question is open about another call than one with a digest.
func (t *Task) asksBeside(digest string) bool {
	return slices.ContainsFunc(t.Calls, func(c *task.Consent) bool { return isOpen(c) && c.Digest != digest })
}

// ExpireCall ends a question about a call that nobody answered in time.
type ExpireCall struct {
	Task   int64
	Digest string
}

func (c *ExpireCall) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || t.State != task.Running {
		return ErrStale
	}
	for _, asked := range t.Calls {
		if asked.Digest == c.Digest && isOpen(asked) && expired(asked, d.now) {
			d.conclude(t, asked, task.Expired, "nobody decided in time")
			d.markCalls(t, t.asksBeside(c.Digest))
		}
	}
	return nil
}

// RecordUnasked records a call that the agent of a running task made without asking.
type RecordUnasked struct {
	Task    int64
	Attempt int
	Call    task.Call
}

func (c *RecordUnasked) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || t.State != task.Running || t.Attempt != c.Attempt {
		return ErrStale
	}
	d.show(t, task.KindToolUnasked, map[string]any{"kind": c.Call.Kind, "call": c.Call.Words()})
	return nil
}

// RecordToolUse records what the tool broker of a running task did.
type RecordToolUse struct {
	Task    int64
	Attempt int
	Kind    task.Kind
	Use     task.ToolUse
}

func (c *RecordToolUse) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || t.State != task.Running || t.Attempt != c.Attempt {
		return ErrStale
	}
	server, tool, _ := strings.Cut(c.Use.Tool, "/")
	data := map[string]any{"server": server, "tool": tool}
	for name, value := range map[string]string{"arguments_sha256": c.Use.Arguments, "result_sha256": c.Use.Result, "reason": c.Use.Why} {
		if value != "" {
			data[name] = value
		}
	}
	if c.Kind == task.KindToolCalled {
		data["took_ms"], data["failed"] = c.Use.TookMS, c.Use.Failed
		if c.Use.Tokens > 0 || c.Use.USDCents > 0 {
			data["tokens"], data["usd_cents"] = c.Use.Tokens, c.Use.USDCents
		}
	}
	d.show(t, c.Kind, data)
	return nil
}

// voidCalls ends the open questions about calls of a run that has ended.
func (d *decision) voidCalls(t *Task) {
	for _, asked := range t.Calls {
		if isOpen(asked) {
			d.conclude(t, asked, task.Void, "the run has ended")
		}
	}
}

// callQuestion returns the open question about a call that has a digest, or else the oldest open one;
// nil for none.
func (t *Task) callQuestion(digest string) (first *task.Consent) {
	for _, asked := range t.Calls {
		switch {
		case !isOpen(asked):
		case asked.Digest == digest:
			return asked
		case first == nil:
			first = asked
		}
	}
	return first
}

// CallDecisionOf returns what a decision of a person means for the call; zero for none yet. An
// approval counts as long as its proof holds.
func CallDecisionOf(c task.Consent, terms task.Terms, now time.Time) task.CallDecision {
	reject := func(reason string) task.CallDecision {
		return task.CallDecision{Answer: task.RejectCall, By: c.Decider, Reason: reason}
	}
	switch c.Decision {
	case task.Undecided:
		return task.CallDecision{}
	case task.Approved:
		if why := whyUnproven(&c, task.Verdict{Terms: terms}); why != "" {
			return reject(why)
		}
		if expired(&c, now) {
			return reject("the approval has expired")
		}
		return task.CallDecision{Answer: task.AllowCall, By: c.Decider, Reason: c.Note}
	}
	return reject(c.Note)
}
