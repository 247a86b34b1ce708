package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"mailboxd/envelope"
)

// sendArgs are the arguments of send_task.
type sendArgs struct {
	Agent       string                    `json:"target_agent"`
	Type        string                    `json:"task_type"`
	Description string                    `json:"description"`
	Payload     jsontext.Value            `json:"payload"`
	Refs        jsontext.Value            `json:"refs"`
	Role        string                    `json:"role"`
	Deadline    string                    `json:"deadline"`
	Approval    string                    `json:"approval"`
	TaskID      string                    `json:"task_id"`
	More        map[string]jsontext.Value `json:"more"`
}

// A receipt is the answer of send_task.
type receipt struct {
	TaskID envelope.ID `json:"task_id"`
	Served bool        `json:"daemon_running"`
}

// greeting is how long a sender waits to learn whether a daemon runs.
const greeting = time.Second

// sendTask appends a task line, as every sender does. What any daemon would refuse
// is told to the model at once; all else is for the daemon to judge.
func (s *server) sendTask(ctx context.Context, _ call, in sendArgs) (receipt, error) {
	id, err := in.id()
	if err != nil {
		return receipt{}, err
	}
	line, err := s.line(id, in)
	if err != nil {
		return receipt{}, err
	}
	taken, err := s.Send(ctx, line)
	if err != nil {
		return receipt{}, err
	}
	s.outbox.add(id, taken)
	hello, stop := context.WithTimeout(ctx, greeting)
	defer stop()
	daemon, err := s.Daemon(hello)
	if err == nil {
		daemon.Close()
	}
	return receipt{TaskID: id, Served: err == nil}, nil
}

func (in *sendArgs) id() (envelope.ID, error) {
	if in.TaskID != "" {
		return taskID(in.TaskID)
	}
	unique, err := uuid.NewRandom() // its first characters are a short id
	return envelope.ID(unique.String()), err
}

// line makes the envelope. Nothing in more may replace what has an argument of
// its own, and nobody sends in another's name.
func (s *server) line(id envelope.ID, in sendArgs) ([]byte, error) {
	for name, value := range map[string]string{"task_type": in.Type, "description": in.Description} {
		if value == "" {
			return nil, errors.New(name + ": required")
		}
	}
	request := map[string]any{
		"schema_version": envelope.SchemaVersion,
		"task_id":        id,
		"requester_id":   s.opts.Requester,
		"target_agent":   in.Agent,
		"target_role":    cmp.Or(in.Role, "executor"),
		"task_type":      in.Type,
		"description":    in.Description,
		"input":          in.input(),
	}
	if in.Deadline != "" {
		request["deadline"] = in.Deadline
	}
	if in.Approval != "" {
		request["approval_required"] = in.Approval
	}
	for name, value := range in.More {
		if _, taken := request[name]; taken {
			return nil, fmt.Errorf("more.%s: has an argument of its own, or is not the caller's to say", name)
		}
		request[name] = value
	}
	if err := s.setParent(request); err != nil {
		return nil, err
	}
	line, err := envelope.RequestLine(request)
	if err != nil {
		return nil, err
	}
	return line, s.check(line)
}

// argumentOf has the arguments of send_task, by the field of the request that they become.
var argumentOf = map[string]string{
	"target_agent": "target_agent", "task_type": "task_type", "description": "description", "input": "payload", "target_role": "role",
	"deadline": "deadline", "approval_required": "approval", "task_id": "task_id", "requester_id": "requester_id",
}

// check returns why a daemon would refuse a line, by the names of the arguments.
func (s *server) check(line []byte) error {
	t, findings := envelope.DecodeTask(line, envelope.Strict)
	findings = append(findings, s.opts.NearMisses.Apply(t.NearMisses)...)
	refused := findings.Refusals()
	if len(refused) == 0 {
		return nil
	}
	for i, f := range refused {
		head, rest := f.Field, ""
		if end := strings.IndexAny(head, ".["); end >= 0 {
			head, rest = head[:end], head[end:]
		}
		argument, own := argumentOf[head]
		switch {
		case strings.HasPrefix(f.Field, "input.refs"):
			refused[i].Field = strings.TrimPrefix(f.Field, "input.")
		case own:
			refused[i].Field = argument + rest
		default:
			refused[i].Field = "more." + f.Field
		}
	}
	return fmt.Errorf("not sent: %s", refused)
}

func (in *sendArgs) input() map[string]any {
	input := map[string]any{"refs": in.Refs, "payload": in.Payload}
	if in.Refs == nil || in.Refs.Kind() == 'n' {
		input["refs"] = []envelope.Ref{}
	}
	if in.Payload == nil {
		input["payload"] = struct{}{}
	}
	return input
}

// setParent names the task whose run sends, so that what it asks for counts as
// its child.
func (s *server) setParent(request map[string]any) error {
	if s.opts.Parent == "" {
		return nil
	}
	metadata := map[string]jsontext.Value{}
	if given, ok := request["metadata"].(jsontext.Value); ok {
		if err := json.Unmarshal(given, &metadata); err != nil {
			return fmt.Errorf("more.metadata: %w", err)
		}
	}
	parent, err := json.Marshal(s.opts.Parent)
	if err != nil {
		return err
	}
	metadata[envelope.ParentTask] = parent
	request["metadata"] = metadata
	return nil
}
