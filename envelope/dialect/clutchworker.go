package dialect

import (
	"cmp"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// Dispatch is the standard input of a program of the profile clutch-worker: a task as a
// task.request, and a context, as one object.
func Dispatch(t envelope.Task, context map[string]jsontext.Value) []byte {
	return dispatched(t, Translate(t, envelope.Clutch), context)
}

// DispatchAction is the standard input of such a program in the form of the reference: the task
// as {taskId, runId, threadId, parentTaskId, action, input, constraints}, and a context, as one
// object. The action is the type of the task, and input its payload, which is an object. The
// constraints are those of budget, which may be the rest of the task's own.
func DispatchAction(t envelope.Task, budget envelope.Budget, context map[string]jsontext.Value) []byte {
	m, findings := clutchCodec{}.Decode(Translate(t, envelope.Clutch), envelope.Legacy)
	if findings.Refused() || m.Clutch == nil {
		m.Clutch = &envelope.ClutchPart{Payload: t.Payload}
	}
	asker := clutchAsker(t)
	input := m.Clutch.Payload
	if input.Kind() != '{' {
		input = object(map[string]jsontext.Value{"input": or(input, jsontext.Value("null"))})
	}
	var constraints, w writer
	constraints.add("maxTokens", numberValue(budget.Tokens))
	if budget.USDCents != nil {
		constraints.add("maxCost", jsontext.Value(dollars(*budget.USDCents)))
	}
	if limit := m.Clutch.MaxRuntime; limit > 0 {
		constraints.add("maxRuntimeSec", strconv.AppendFloat(nil, limit.Seconds(), 'f', -1, 64))
	}
	w.word("taskId", asker.Clutch.TaskID)
	w.word("runId", asker.Clutch.RunID)
	w.word("threadId", asker.Thread)
	w.word("parentTaskId", string(m.Clutch.Parent))
	w.word("action", cmp.Or(t.Type, plainTypes["REQ"]))
	w.add("input", input)
	if constraints.text != nil {
		w.add("constraints", constraints.end())
	}
	return dispatched(t, w.end(), context)
}

// dispatched returns a task and its context as one object.
func dispatched(t envelope.Task, task []byte, context map[string]jsontext.Value) []byte {
	asker := clutchAsker(t)
	all := map[string]jsontext.Value{
		"taskId": quoted(asker.Clutch.TaskID), "runId": quoted(asker.Clutch.RunID), "threadId": quoted(asker.Thread),
	}
	for name, value := range context {
		all[name] = value
	}
	return line(object(map[string]jsontext.Value{"dispatch": task, "context": object(all)}))
}

// DecodeWorkerReply reads the output of such a program: {taskId, success, output, error,
// usage}. Refusals are of the kind OutputInvalid, or IdentityMismatch for another task.
func DecodeWorkerReply(raw []byte, about envelope.Task) (envelope.Result, envelope.Findings) {
	if _, findings := envelope.ContentHash(raw); findings.Refused() {
		return envelope.Result{}, attributeToAgent(findings)
	}
	var findings envelope.Findings
	f := newFields(raw, "", &findings)
	task := f.name("taskId", f.member("taskId"))
	success := f.flag("success")
	if !f.has("success") {
		f.refuse("success", "required")
	}
	if task != "" && TaskID(task) != about.ID {
		f.note(envelope.IdentityMismatch, "taskId", "is another task")
	}
	if findings.Refused() {
		return envelope.Result{}, attributeToAgent(findings)
	}
	word, payload := "task.result", workerOutput(f)
	if !success {
		word, payload = "task.error", workerError(f)
	}
	said := object(map[string]jsontext.Value{"type": quoted(word), "payload": payload})
	m, more := clutchCodec{}.Receive(said, about)
	m.Answer.Cost = cmp.Or(m.Answer.Cost, Usage(f.member("usage")))
	return m.Answer, append(findings, more...)
}

// workerOutput returns the payload of the task.result for a reply.
func workerOutput(f fields) jsontext.Value {
	output := f.member("output")
	p := map[string]jsontext.Value{"success": boolean(true)}
	switch {
	case output.Kind() == '"':
		p["summary"] = output
	case output != nil:
		p["output"] = output
	}
	return object(p)
}

// workerError returns the payload of the task.error for a reply.
func workerError(f fields) jsontext.Value {
	failure := f.member("error")
	if failure.Kind() == '{' {
		return failure
	}
	text, _ := textOf(failure)
	code, _ := ClutchCode(envelope.AgentError)
	details := object(map[string]jsontext.Value{"kind": quoted(string(envelope.AgentError))})
	return object(map[string]jsontext.Value{"code": quoted(code), "message": quoted(cmp.Or(text, "it did not say why")), "details": details})
}

// Usage reads the usage that an agent reports: tokens, and dollars, which become cents rounded
// up. It is nil if the report has neither.
func Usage(usage jsontext.Value) *envelope.Cost {
	said := membersOf(usage)
	tokens, counted := int64(0), false
	for _, name := range []string{"total_tokens", "tokens"} {
		if n, ok := wholeOf(said[name]); ok {
			tokens, counted = n, true
		}
	}
	if !counted {
		for _, name := range []string{"input_tokens", "output_tokens"} {
			if n, ok := wholeOf(said[name]); ok {
				tokens, counted = tokens+min(n, math.MaxInt64-tokens), true
			}
		}
	}
	cents, exact, priced := centsOf(or(said["cost_usd"], said["cost"]))
	if priced && !exact && cents < math.MaxInt64 {
		cents++
	}
	switch {
	case !counted && !priced:
		return nil
	case !priced:
		cents = 0
	}
	return &envelope.Cost{Tokens: tokens, USDCents: cents, Unpriced: !priced}
}

// wholeOf returns a whole number, 0 or more.
func wholeOf(value jsontext.Value) (int64, bool) {
	n, err := strconv.ParseUint(string(value), 10, 63)
	return int64(n), err == nil && value.Kind() == '0'
}
