package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
)

// notFound is the error for a task that is not one of the sender, whether there is one or not.
var notFound = a2a.NewError(a2a.ErrTaskNotFound, "there is no such task of this sender")

// own returns all that is known of a task of the sender. A task of another sender is not found, and the
// attempt is recorded.
func (s *server) own(ctx context.Context, c call, id a2a.TaskID) (client.TaskDetails, error) {
	var found client.TaskDetails
	name, err := envelope.ParseID(string(id))
	if err == nil {
		err = s.daemon.use(ctx, func(d daemon) error {
			found, err = d.Details(ctx, name)
			return err
		})
	}
	said, answered := errors.AsType[*client.Error](err)
	switch {
	case name == "" || answered && said.Kind == client.NoTask || err == nil && found.Task.Requester != c.sender.Name:
		s.callers.Report(c.request.WithContext(ctx), fmt.Sprintf("it asks for the task %.80q, which is not one of the sender", id))
		return client.TaskDetails{}, notFound
	case err != nil:
		return client.TaskDetails{}, s.failure(err)
	}
	return found, nil
}

// failure is the error of a request that the daemon can't fulfil. Its cause is for the operator alone.
func (s *server) failure(err error) error {
	_, known := errors.AsType[*a2a.Error](err)
	switch {
	case err == nil || known:
		return err
	case isDown(err):
		return &downError{err}
	}
	s.opts.Log.Error().Err(err).Msg("request failed")
	return a2a.ErrInternalError
}

// A downError says that no daemon can be asked now. Clients read nothing of its cause, which may name paths.
type downError struct{ cause error }

func (e *downError) Error() string { return down.words }

// Unwrap returns the error of the protocol, and the cause.
func (e *downError) Unwrap() []error { return []error{a2a.ErrServerError, e.cause} }

// show returns a task as the protocol has it.
func (s *server) show(ctx context.Context, file client.TaskDetails) (*a2a.Task, error) {
	row := file.Task
	state, why := stateOf(row)
	at := changedAt(file)
	t := &a2a.Task{ID: a2a.TaskID(row.ID), ContextID: contextOf(file)}
	switch {
	case state == a2a.TaskStateInputRequired:
		question, err := s.question(ctx, row)
		if err != nil {
			return nil, err
		}
		why = cmp.Or(question, why)
	case row.State == task.Done:
		r, err := s.result(ctx, file)
		if err != nil {
			return nil, err
		}
		why = r.Error.Message
		t.Artifacts = artifactsOf(r)
	}
	t.Status = a2a.TaskStatus{State: state, Timestamp: &at, Message: statusMessage(t, row.Attempt, state, why)}
	return t, nil
}

// statusMessage says why a task is in a state; nil for no reason. Its id is the same each time.
func statusMessage(t *a2a.Task, attempt int, state a2a.TaskState, why string) *a2a.Message {
	if why == "" {
		return nil
	}
	return &a2a.Message{
		ID:   nameOf("status", string(t.ID), fmt.Sprint(attempt), string(state), why),
		Role: a2a.MessageRoleAgent, TaskID: t.ID, ContextID: t.ContextID, Parts: a2a.ContentParts{a2a.NewTextPart(why)},
	}
}

// nameOf makes a name of texts: the same each time, and another one for other texts.
func nameOf(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return "a2a-" + hex.EncodeToString(sum[:16])
}

// contextOf returns the context of a task: its conversation, without the name of the sender, or its id.
func contextOf(file client.TaskDetails) string {
	var request struct {
		Metadata map[string]any `json:"metadata"`
	}
	_ = json.Unmarshal(file.Request, &request) // it may be too old to be kept, or in another dialect
	thread, _ := request.Metadata[envelope.ThreadID].(string)
	return cmp.Or(strings.TrimPrefix(thread, file.Task.Requester+":"), string(file.Task.ID))
}

// threadOf returns the conversation of a context. Senders share none, whatever the names of their contexts.
func threadOf(sender, contextID string) string { return sender + ":" + contextID }

// question returns what the agent of a task asked last; "" if it is not known.
func (s *server) question(ctx context.Context, row client.Task) (string, error) {
	var thread client.Dialogue
	err := s.daemon.use(ctx, func(d daemon) (err error) {
		thread, err = d.Thread(ctx, string(row.ID))
		return err
	})
	if err != nil {
		return "", s.failure(err)
	}
	for _, m := range slices.Backward(thread.Messages) {
		if m.Task == row.ID && m.From == row.Agent && m.Text != "" {
			return m.Text, nil
		}
	}
	return "", nil
}

// result returns the result of a task that is done. Its file comes a moment after the event.
func (s *server) result(ctx context.Context, file client.TaskDetails) (envelope.Result, error) {
	raw := []byte(file.Result)
	if !file.Task.ResultFinal {
		raw = nil
	}
	for pause := time.Millisecond; raw == nil && pause < time.Second; pause *= 2 {
		err := s.daemon.use(ctx, func(d daemon) (err error) {
			raw, err = d.Result(ctx, file.Task.ID)
			return err
		})
		if said, ok := errors.AsType[*client.Error](err); err != nil && (!ok || said.Kind != client.NoResult) {
			return envelope.Result{}, s.failure(err)
		}
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return envelope.Result{}, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
	r, _ := envelope.DecodeResult(raw) // the file may be gone, or changed by another program: the state says how the task ended
	return r, nil
}

// artifactsOf returns what a result gives its requester.
func artifactsOf(r envelope.Result) []*a2a.Artifact {
	var parts a2a.ContentParts
	if r.Output.Summary != "" && r.Output.Summary != envelope.NoSummary && r.Output.Summary != r.Error.Message {
		parts = append(parts, a2a.NewTextPart(r.Output.Summary))
	}
	more := map[string]any{}
	if r.Output.Extra != nil {
		more["output"] = r.Output.Extra
	}
	local := func(ref envelope.Ref) bool { return !strings.HasPrefix(ref.URI, "artifact:") } // a path of this machine
	if refs := slices.DeleteFunc(r.Artifacts, local); len(refs) > 0 {
		more["artifact_refs"] = refs
	}
	var actions []map[string]string
	for _, a := range r.Output.Actions {
		actions = append(actions, map[string]string{"kind": a.Kind, "description": a.Description, "status": a.Status})
	}
	if actions != nil {
		more["actions"] = actions
	}
	if len(more) > 0 {
		parts = append(parts, a2a.NewDataPart(more))
	}
	if parts == nil {
		return nil
	}
	return []*a2a.Artifact{{ID: "result", Name: "result", Parts: parts}}
}
