package dialect

import (
	"cmp"
	"maps"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// ainlRequest writes the request of a message as an AgentTaskRequest. Its role is executor if
// the message has none.
func ainlRequest(m envelope.Message) jsontext.Value {
	t := m.Request
	var w writer
	w.word("schema_version", envelope.SchemaVersion)
	w.word("task_id", cmp.Or(string(t.ID), string(m.Task), string(TaskID(m.ID))))
	w.word("requester_id", cmp.Or(t.Requester, m.From, envelope.Mailboxd))
	w.word("target_agent", cmp.Or(t.Agent, one(m.To)))
	w.word("target_role", cmp.Or(t.Role, "executor"))
	w.word("task_type", cmp.Or(t.Type, m.Type, "task"))
	w.add("description", quoted(cmp.Or(t.Description, m.Text)))
	w.add("input", inputOf(t))
	limits := limitsOf(t)
	for _, name := range limitNames {
		w.add(name, limits[name])
	}
	w.add("metadata", metadataOf(m))
	return w.end()
}

// one returns the only element of a list, else Everybody.
func one(to []string) string {
	if len(to) == 1 {
		return to[0]
	}
	return envelope.Everybody
}

// inputOf returns the input of a task: as it came, or made of the task's fields.
func inputOf(t envelope.Task) jsontext.Value {
	if t.Input != nil {
		return t.Input
	}
	var w writer
	w.add("refs", refsValue(t.Refs))
	payload := t.Payload
	if payload == nil {
		payload = jsontext.Value("{}")
	}
	w.add("payload", payload)
	return w.end()
}

func refsValue(refs []envelope.Ref) jsontext.Value {
	if len(refs) == 0 {
		return nil
	}
	list := make([]jsontext.Value, len(refs))
	for i, ref := range refs {
		var w writer
		w.add("kind", quoted(ref.Kind))
		w.add("uri", quoted(ref.URI))
		list[i] = w.end()
	}
	return array(list)
}

// limitNames are the members with the limits of a request, in the order of the contract
// (AINL-41 to AINL-52).
var limitNames = []string{
	"required_output_contract", "sensitivity", "deadline", "budget_limit", "allowed_tools",
	"approval_required", "human_approver", "callback", "policy_context",
}

// limitsOf returns the members with limits of a task, except for those with the value that an
// absent member means.
func limitsOf(t envelope.Task) map[string]jsontext.Value {
	limits := map[string]jsontext.Value{
		"required_output_contract": contractValue(t.Contract),
		"allowed_tools":            namesValue(t.AllowedTools),
		"policy_context":           policyValue(t),
	}
	word := func(name, text string) {
		if text != "" {
			limits[name] = quoted(text)
		}
	}
	if sensitive(t) {
		word("sensitivity", t.Sensitivity.String())
	}
	if !t.Deadline.IsZero() {
		word("deadline", t.Deadline.Format(time.RFC3339Nano))
	}
	word("approval_required", string(t.Approval))
	word("human_approver", t.HumanApprover)
	var budget, callback writer
	budget.add("tokens", numberValue(t.Budget.Tokens))
	budget.add("usd_cents", numberValue(t.Budget.USDCents))
	callback.word("queue", t.Callback.Queue)
	callback.word("file_append", t.Callback.FileAppend)
	for name, w := range map[string]writer{"budget_limit": budget, "callback": callback} {
		if w.text != nil {
			limits[name] = w.end()
		}
	}
	maps.DeleteFunc(limits, func(_ string, value jsontext.Value) bool { return value == nil })
	return limits
}

// sensitive reports whether the sensitivity of a task differs from that of a request without
// one. The zero Task has no sensitivity; it is not public.
func sensitive(t envelope.Task) bool {
	return t.Sensitivity > envelope.Internal || t.Sensitivity < envelope.Internal && t.ID != ""
}

func contractValue(c *envelope.OutputContract) jsontext.Value {
	if c == nil {
		return nil
	}
	var w writer
	w.word("format", c.Format)
	w.word("schema_ref", c.SchemaRef)
	w.add("must_include_fields", namesValue(c.MustInclude))
	return w.end()
}

func policyValue(t envelope.Task) jsontext.Value {
	var w writer
	w.word("environment", t.Environment)
	windows := make([]string, len(t.ChangeWindows))
	for i, window := range t.ChangeWindows {
		windows[i] = window.Start.Format(time.RFC3339Nano) + "/" + window.End.Format(time.RFC3339Nano)
	}
	if len(windows) > 0 {
		w.add("change_window", namesValue(windows))
	}
	if w.text == nil {
		return nil
	}
	return w.end()
}

// namesValue returns a list of strings; nil for nil, which differs from an empty list.
func namesValue(names []string) jsontext.Value {
	if names == nil {
		return nil
	}
	list := make([]jsontext.Value, len(names))
	for i, name := range names {
		list[i] = quoted(name)
	}
	return array(list)
}

func numberValue(n *int64) jsontext.Value {
	if n == nil {
		return nil
	}
	return strconv.AppendInt(nil, *n, 10)
}

// metadataOf returns the metadata of a request. Members of other dialects that AINL doesn't
// have are added with names of ours (mapping 2.5).
func metadataOf(m envelope.Message) jsontext.Value {
	all := maps.Clone(m.Request.Metadata)
	if all == nil {
		all = map[string]jsontext.Value{}
	}
	say := func(name, text string) {
		if text != "" {
			all[name] = quoted(text)
		}
	}
	if m.Dialect != "" && m.Dialect != envelope.AINL {
		say("mbx.dialect", string(m.Dialect))
	}
	say(envelope.ThreadID, m.Thread)
	if m.Clutch == nil {
		say("mbx.tid", m.Trace)
	} else {
		clutchMetadata(m.Clutch, all)
	}
	say("mbx.pid", m.Cause)
	say("mbx.delegation_mode", string(m.Tie))
	say("mbx.inline", m.Context.Inline)
	say("mbx.hash", m.Context.Hash)
	if m.Deterministic {
		all["mbx.det"] = jsontext.Value("true")
	}
	if len(all) == 0 {
		return nil
	}
	return object(all)
}
