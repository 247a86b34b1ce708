package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// takenWithin is how long the daemon may take to read a line.
const takenWithin = 30 * time.Second

// A message is what a client sends, as far as a task line can have it.
type message struct {
	*a2a.Message
	agent, role, kind string // of the task
	text              string
	data              []any
}

// messageOf checks the message of a request.
func messageOf(req *a2a.SendMessageRequest) (message, error) {
	if req == nil || req.Message == nil {
		return message{}, invalid("message: required")
	}
	m := message{Message: req.Message}
	named := func(key, otherwise string) string {
		for _, from := range []map[string]any{m.Metadata, req.Metadata} {
			if text, ok := from[key].(string); ok && text != "" {
				return text
			}
		}
		return otherwise
	}
	m.agent, m.role, m.kind = named("agent", ""), named("role", "executor"), named("task_type", "message")
	switch {
	case m.ID == "":
		return m, invalid("message.messageId: required")
	case m.Role != a2a.MessageRoleUser:
		return m, invalid("message.role: must be ROLE_USER")
	case req.Config != nil && req.Config.PushConfig != nil:
		return m, a2a.ErrPushNotificationNotSupported
	case len(m.ContextID) > maxContext || strings.ContainsFunc(m.ContextID, unicode.IsControl):
		return m, invalid("message.contextId: must have at most %d bytes, and no control characters", maxContext)
	case len(m.Parts) == 0:
		return m, invalid("message.parts: required")
	}
	return m, m.readParts()
}

// maxContext is how long the name of a context may be, in bytes.
const maxContext = 512

// readParts takes the texts and the data of a message. Files have no place in a task line.
func (m *message) readParts() error {
	var texts []string
	for i, p := range m.Parts {
		switch content := p.Content.(type) {
		case a2a.Text:
			texts = append(texts, string(content))
		case a2a.Data:
			m.data = append(m.data, content.Value)
		default:
			return a2a.NewError(a2a.ErrUnsupportedContentType, fmt.Sprintf("message.parts[%d]: must have text or data", i))
		}
	}
	m.text = strings.Join(texts, "\n\n")
	return nil
}

func invalid(format string, args ...any) error {
	return a2a.NewError(a2a.ErrInvalidParams, fmt.Sprintf(format, args...))
}

// submit sends a message, once however often it comes, and returns its task once the daemon has taken the
// line. A message for a task is a reply to its agent.
func (s *server) submit(ctx context.Context, c call, req *a2a.SendMessageRequest) (envelope.ID, error) {
	m, err := messageOf(req)
	if err != nil {
		return "", err
	}
	name := nameOf(c.sender.Name, m.ID)
	id, err, _ := s.sending.Do(name, func() (any, error) {
		ctx, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), takenWithin, errNotTaken) // others may wait for it, too
		defer stop()
		if m.TaskID != "" {
			return envelope.ID(m.TaskID), s.reply(ctx, c, m, name)
		}
		return envelope.ID(name), s.request(ctx, c, m, envelope.ID(name))
	})
	if err != nil {
		return "", err
	}
	return id.(envelope.ID), nil
}

var errNotTaken = a2a.NewError(a2a.ErrServerError, "mailboxd has not taken the message yet; send it again with the same messageId")

// request appends a task line, unless the task is there.
func (s *server) request(ctx context.Context, c call, m message, id envelope.ID) error {
	there := func() (bool, error) {
		err := s.daemon.use(ctx, func(d daemon) error {
			_, err := d.Latest(ctx, id)
			return err
		})
		if said, ok := errors.AsType[*client.Error](err); ok && said.Kind == client.NoTask {
			return false, nil
		}
		return err == nil, err
	}
	known, err := there()
	if err != nil {
		return s.failure(err)
	}
	if known {
		return nil
	}
	line, err := s.line(c, m, id)
	if err != nil {
		return err
	}
	if err := s.append(line); err != nil {
		return err
	}
	return s.failure(s.changes.await(ctx, id, there))
}

// line makes the task line of a message. It has nothing but what is checked here: the metadata of a
// client could name directories, files and tasks that are not the sender's.
func (s *server) line(c call, m message, id envelope.ID) ([]byte, error) {
	agent := m.agent
	if agent == "" && len(c.sender.Agents) == 1 {
		agent = c.sender.Agents[0]
	}
	if !slices.Contains(c.sender.Agents, agent) {
		return nil, invalid("message.metadata.agent: must be one of %q, the skills of the card; it is %.80q", c.sender.Agents, agent)
	}
	payload := map[string]any{}
	switch len(m.data) {
	case 0:
	case 1:
		payload["data"] = m.data[0]
	default:
		payload["data"] = m.data
	}
	line, err := envelope.RequestLine(map[string]any{
		"schema_version": envelope.SchemaVersion, "task_id": id, "requester_id": c.sender.Name,
		"target_agent": agent, "target_role": m.role, "task_type": m.kind, "description": m.text,
		"input":    map[string]any{"refs": []envelope.Ref{}, "payload": payload},
		"metadata": map[string]any{envelope.ThreadID: threadOf(c.sender.Name, cmp.Or(m.ContextID, string(id)))},
	})
	if err != nil {
		return nil, invalid("message: %v", err)
	}
	if _, findings := envelope.DecodeTask(line, envelope.Strict); findings.Refused() {
		return nil, invalid("message: %s", findings.Refusals())
	}
	return line, nil
}

// append appends a line to the mailbox, as any sender can.
func (s *server) append(line []byte) error {
	if int64(len(line)) > s.opts.MaxLine {
		return a2a.NewError(a2a.ErrInvalidRequest, fmt.Sprintf("the task line would have more than %d bytes", s.opts.MaxLine))
	}
	if _, _, err := mailbox.Append(s.root, line); err != nil {
		return s.failure(err)
	}
	return nil
}

// reply gives the agent of a task the reply that it waits for. mid names the message: the same message is
// delivered once.
func (s *server) reply(ctx context.Context, c call, m message, mid string) error {
	file, err := s.own(ctx, c, m.TaskID)
	if err != nil {
		return err
	}
	before := file.Task
	said, err := s.said(ctx, before.ID, mid)
	switch {
	case err != nil || said:
		return err
	case m.ContextID != "" && m.ContextID != contextOf(file):
		return invalid("message.contextId: is not the context of the task")
	case !waits(before):
		state, _ := stateOf(before)
		return a2a.NewError(a2a.ErrUnsupportedOperation, fmt.Sprintf("the task waits for no message; its state is %s", state))
	case m.text == "":
		return a2a.NewError(a2a.ErrUnsupportedContentType, "message.parts: a reply needs a text")
	}
	line, err := replyLine(c, m, before, mid)
	if err != nil {
		return err
	}
	if err := s.append(line); err != nil {
		return err
	}
	return s.failure(s.changes.await(ctx, before.ID, func() (bool, error) {
		var now client.Task
		err := s.daemon.use(ctx, func(d daemon) (err error) {
			now, err = d.Latest(ctx, before.ID)
			return err
		})
		return err == nil && (!waits(now) || now.Attempt != before.Attempt), err
	}))
}

func waits(t client.Task) bool { return t.State == task.Held && task.EndedBy(t.Held, task.Answer) }

// messageID is the member of a reply with the name of its message.
const messageID = "a2a_message"

// replyLine makes the line of a reply. AINL has no messages, so it is one of CAP. It has the time of the task, so that
// a message that comes again makes the same line, which the daemon takes once.
func replyLine(c call, m message, about client.Task, mid string) ([]byte, error) {
	codec, _ := dialect.Of(envelope.CAP)
	line, _ := codec.Encode(envelope.Message{
		Dialect: envelope.CAP, Act: envelope.Informs, Task: about.ID, From: c.sender.Name, To: []string{about.Agent},
		Time: about.Received, Text: m.text, Extra: []byte(`{"` + messageID + `":"` + mid + `"}`),
	})
	if _, findings := codec.Decode(line, envelope.Strict); findings.Refused() {
		return nil, invalid("message: %s", findings.Refusals())
	}
	return line, nil
}

// said reports whether a reply about a task is recorded already.
func (s *server) said(ctx context.Context, id envelope.ID, mid string) (bool, error) {
	var thread client.Dialogue
	err := s.daemon.use(ctx, func(d daemon) (err error) {
		thread, err = d.Thread(ctx, string(id))
		return err
	})
	if said, ok := errors.AsType[*client.Error](err); ok && said.Kind == client.NoTask {
		return false, nil
	}
	if err != nil {
		return false, s.failure(err)
	}
	return slices.ContainsFunc(thread.Messages, func(one client.Message) bool {
		return strings.Contains(string(one.Line), `"`+messageID+`":"`+mid+`"`)
	}), nil
}
