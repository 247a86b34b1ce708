package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/running/remote"
)

// settle returns the result of a task that has ended or waits for somebody.
func (d *dialogue) settle(t *a2a.Task) (r Result, done bool) {
	if r := d.identify(t.TaskInfo(), false); r.Kind != "" {
		return r, true
	}
	words := remote.Words(t.Status.Message)
	switch t.Status.State {
	case a2a.TaskStateSubmitted, a2a.TaskStateWorking:
		d.showStatus(t.Status)
		return r, false
	case a2a.TaskStateCompleted:
		return d.output(t), true
	case a2a.TaskStateInputRequired:
		return d.ask(t, words)
	case a2a.TaskStateAuthRequired:
		r = d.later(envelope.AgentError, "the agent needs a login"+quoteStart([]byte(words)))
		r.Status = http.StatusUnauthorized
		return r, true
	case a2a.TaskStateFailed:
		return refuse(envelope.AgentError, "the agent failed%s", quoteStart([]byte(words))), true
	case a2a.TaskStateRejected:
		return refuse(envelope.AgentError, "the agent rejected the task%s", quoteStart([]byte(words))), true
	case a2a.TaskStateCanceled:
		return refuse(envelope.Cancelled, "the agent cancelled the task%s", quoteStart([]byte(words))), true
	}
	return refuse(envelope.AgentProtocol, "the agent says that its task is %s, which A2A doesn't know", short(string(t.Status.State))), true
}

// lacksReply reports whether it isn't known that the agent has the reply that was sent.
func (d *dialogue) lacksReply(t *a2a.Task) bool {
	if d.record.Said == d.record.Received {
		return false
	}
	has := slices.ContainsFunc(t.History, func(m *a2a.Message) bool { return m != nil && m.ID == d.record.Key })
	if t.Status.State == a2a.TaskStateInputRequired && !has {
		return true
	}
	d.record.Received = d.record.Said
	return false
}

// ask returns the question of the agent to a person. A question whose reply was sent is none any more.
func (d *dialogue) ask(t *a2a.Task, words string) (r Result, done bool) {
	id := ""
	if m := t.Status.Message; m != nil {
		id = m.ID
	}
	if at := t.Status.Timestamp; at != nil {
		id += " " + at.UTC().Format(time.RFC3339Nano)
	}
	if !d.record.Asked && id == d.record.Question && id != "" {
		return r, false
	}
	d.record.Asked, d.record.Question = true, id
	if err := d.record.write(d.Dir); err != nil {
		return d.later(envelope.InternalError, err.Error()), true
	}
	r.Question, r.open = cmp.Or(words, "The agent asks for more, and doesn't say for what."), true
	return r, true
}

// output returns what the agent handed over as an answer: its texts as the summary, one object as the output, and
// all of it as files of the run.
func (d *dialogue) output(t *a2a.Task) Result {
	artifacts := t.Artifacts
	if m := t.Status.Message; m != nil {
		artifacts = append([]*a2a.Artifact{{Name: "message", Parts: m.Parts}}, artifacts...)
	}
	o, err := remote.Save(d.Dir, artifacts, d.redact)
	if errors.Is(err, remote.ErrTooMany) {
		return refuse(envelope.OutputTooLarge, "%v", err)
	}
	if err != nil { // another attempt asks for it again
		return d.later(envelope.InternalError, "keep what the agent handed over: "+err.Error())
	}
	output := map[string]jsontext.Value{}
	if len(o.Data) == 1 && o.Data[0].Kind() == '{' {
		_ = json.Unmarshal(o.Data[0], &output) // it was marshalled from an object
	} else if len(o.Data) > 0 {
		output["data"] = encode(o.Data)
	}
	if output["summary"] == nil && o.Text != "" {
		output["summary"] = encode(o.Text[:min(len(o.Text), maxSummary)])
	}
	var refs []envelope.Ref
	for _, path := range o.Files {
		refs = append(refs, envelope.Ref{Kind: "file", URI: "file://" + path})
	}
	for _, at := range o.URLs {
		refs = append(refs, envelope.Ref{Kind: "url", URI: at})
	}
	return d.answer(encode(map[string]any{"status": envelope.OK, "output": output, "artifacts": refs}))
}

// maxSummary limits the summary, in bytes. A longer text is whole in its file.
const maxSummary = 1 << 20

// encode encodes what can be encoded.
func encode(v any) jsontext.Value {
	text, _ := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	return text
}

// showStatus passes on what the agent says while it works.
func (d *dialogue) showStatus(s a2a.TaskStatus) {
	note := map[string]string{}
	if words := remote.Words(s.Message); words != "" {
		note["note"] = words
	}
	d.progress(encode(note))
}

// message returns the message that is next: the request, or the replies that the agent lacks.
func (d *dialogue) message() (*a2a.Message, error) {
	m := &a2a.Message{ID: d.record.Key, Role: a2a.MessageRoleUser, TaskID: a2a.TaskID(d.record.Task), ContextID: d.record.Context}
	if d.record.Task == "" {
		var from struct {
			Description string `json:"description"`
			Input       struct {
				Payload jsontext.Value `json:"payload"`
			} `json:"input"`
			Metadata map[string]jsontext.Value `json:"metadata"`
		}
		if err := json.Unmarshal(d.Request, &from, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)); err != nil {
			return nil, fmt.Errorf("read the request: %w", err)
		}
		m.Parts = append(m.Parts, a2a.NewTextPart(from.Description))
		p := from.Input.Payload
		_ = p.Compact() // it was read just now

		if says := string(p); says != "" && says != "null" && says != "{}" {
			m.Parts = append(m.Parts, a2a.NewDataPart(p))
		}
		_ = json.Unmarshal(from.Metadata[envelope.ThreadID], &m.ContextID) // without one, the agent makes a context
	}
	for _, text := range d.said[min(d.record.Received, len(d.said)):min(d.record.Said, len(d.said))] {
		m.Parts = append(m.Parts, a2a.NewTextPart(text))
	}
	return m, nil
}

// unheard returns the result of a request that has no answer of A2A.
func (d *dialogue) unheard(ctx context.Context, err error, sent bool) Result {
	placed := d.record.Task != ""
	status, alone := errors.AsType[*remote.StatusError](err)
	refused, spoke := errors.AsType[*a2a.Error](err)
	if errors.Is(err, a2a.ErrUnauthenticated) || errors.Is(err, a2a.ErrUnauthorized) {
		status, alone = &remote.StatusError{Status: http.StatusUnauthorized}, true
	}
	switch {
	case ctx.Err() != nil:
		return d.later(envelope.Cancelled, "the run was ended before the agent answered")
	case alone:
		r := d.refused(status.Status, status.Header, "")
		r.open, r.Again = r.open || placed, r.Again || placed && status.Status >= 500
		return r
	case spoke:
		return refuse(envelope.AgentError, "the agent refused: %s", short(refused.Error()))
	case errors.Is(err, remote.ErrCard):
		return refuse(envelope.AgentProtocol, "%v", err)
	}
	_, transport := errors.AsType[*transportError](err)
	kind, words := whyOf(err)
	if !transport && kind == envelope.AgentError && !errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse(envelope.AgentProtocol, "the agent answered with what is not A2A: %s", short(err.Error()))
	}
	r := d.unanswered(kind, words, sent)
	r.open = r.open || placed
	return r
}

// cancel has the agent end its task, and waits for the end.
func (d *dialogue) cancel(ctx context.Context, r Result) Result {
	ctx, stop := context.WithTimeout(ctx, cancelTimeout)
	defer stop()
	_, err := d.agent.Cancel(ctx, d.record.Task)
	for wait := shortest; ; wait = min(2*wait, time.Second) {
		t, unread := d.agent.Task(ctx, d.record.Task)
		if unread == nil && t.Status.State.Terminal() {
			r, _ := d.settle(t)
			return r
		}
		if !pause(ctx, wait) {
			r.Message += fmt.Sprintf("; it did not end its task within %v: %v", cancelTimeout, cmp.Or(err, unread, ctx.Err()))
			return r
		}
	}
}
