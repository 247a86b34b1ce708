package envelope

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// limits reads the limits of the task (AINL-44 to AINL-49). An unreadable limit refuses the
// task: it must not mean "no limit".
func (r *request) limits() {
	t := &r.task
	t.Sensitivity = r.sensitivity(r.member(0, "sensitivity"))
	if at := r.member(0, "deadline"); r.is(at, '"') {
		t.Deadline = r.instant(at)
	}
	t.Budget = r.budget(r.member(0, "budget_limit"))
	t.AllowedTools = r.tools(r.member(0, "allowed_tools"))
	t.Approval = r.approval(r.member(0, "approval_required"))
	t.HumanApprover = r.name(r.member(0, "human_approver"))
}

// sensitivity reads a level of AINL-44. An unknown word means the most restricted level.
func (r *request) sensitivity(at int) Sensitivity {
	if !r.is(at, '"') {
		return Internal
	}
	word := r.prose(at)
	rung, ok := ParseSensitivity(word)
	if !ok {
		r.warn(at, "is "+quote(word)+", read as "+quote(rung.String()))
	}
	return rung
}

// budget reads budget_limit (AINL-46).
func (r *request) budget(at int) Budget {
	if !r.is(at, '{') {
		return Budget{}
	}
	for name, value := range r.members(at) {
		if !r.says(name, "tokens") && !r.says(name, "usd_cents") {
			r.warn(value, "is not a limit we know")
		}
	}
	return Budget{Tokens: r.amount(r.member(at, "tokens")), USDCents: r.amount(r.member(at, "usd_cents"))}
}

// tools reads allowed_tools (AINL-47). The agent gets the names joined by commas, so a name
// with a comma would become two.
func (c *check) tools(at int) []string {
	tools := c.names(at)
	if slices.ContainsFunc(tools, func(tool string) bool { return strings.Contains(tool, ",") }) {
		c.refuse(at, "must not hold a name with a comma")
		return nil
	}
	return tools
}

// approval reads approval_required (AINL-48). A boolean is the form of the second upstream
// contract (F6).
func (r *request) approval(at int) Approval {
	if at == none {
		return ApprovalNone
	}
	switch r.kind(at) {
	case 'f':
		return ApprovalNone
	case 't':
		r.warn(at, `is true, read as "pre"`)
		return ApprovalPre
	case '"':
		switch word := r.prose(at); Approval(word) {
		case "none":
			return ApprovalNone
		case ApprovalPre, ApprovalPost, ApprovalBoth:
			return Approval(word)
		}
	}
	r.refuse(at, `must be "none", "pre", "post" or "both"`)
	return ApprovalBoth // so that a display of the refused task shows the strictest
}

// instant reads an RFC 3339 time with a zone (AINL-45).
func (c *check) instant(at int) time.Time {
	text := c.prose(at)
	instant, err := parseInstant(text)
	if err != nil {
		c.refuse(at, fmt.Sprintf(`must be a time with a zone such as "2026-03-09T23:00:00Z", not %s`, quote(text)))
	}
	return instant
}

// parseInstant reads an RFC 3339 time. Go has no leap seconds, so one is read as the second
// after it.
func parseInstant(s string) (time.Time, error) {
	const seconds = len("2026-12-31T23:59")
	leap := strings.HasPrefix(s[min(len(s), seconds):], ":60")
	if leap {
		s = s[:seconds] + ":59" + s[seconds+len(":60"):]
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil || !leap {
		return t, err
	}
	t = t.Add(time.Second)
	if !t.Truncate(time.Second).Equal(t.UTC().Truncate(24 * time.Hour)) {
		return time.Time{}, errors.New("leap seconds end a day")
	}
	return t, nil
}

// policy reads policy_context (AINL-52, AINL-58).
func (r *request) policy(at int) {
	if !r.is(at, '{') {
		return
	}
	if environment := r.member(at, "environment"); environment != none {
		r.task.Environment = r.name(environment)
	}
	r.task.ChangeWindows = r.windows(r.member(at, "change_window"))
}

// ParentTask is the metadata key with which an agent that works on several tasks names the
// parent of its request. mailboxd accepts only a task that the agent works on.
const ParentTask = "mbx.parent_task_id"

// ThreadID is the metadata key with which a task names its conversation.
const ThreadID = "mbx.thread_id"

// metadata reads metadata (AINL-53). mailboxd alone sets the other keys that start with "mbx.",
// except SenderKeys: a sender cannot write mailboxd's records.
func (r *request) metadata(at int) {
	if !r.is(at, '{') {
		return
	}
	r.task.Metadata = make(map[string]jsontext.Value)
	for name, value := range r.members(at) {
		key, _ := r.text(name)
		if slices.Contains(SenderKeys, key) {
			if r.senderKey(key, value) {
				r.task.Metadata[key] = r.value(value)
			}
			continue
		}
		sayable := (key == ParentTask || key == ThreadID || key == WorkflowKey || key == StepKey) && r.kind(value) == '"'
		if strings.HasPrefix(key, "mbx.") && !sayable {
			r.warn(value, "only mailboxd sets it: left out")
			continue
		}
		r.task.Metadata[key] = r.value(value)
	}
}
