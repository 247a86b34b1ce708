package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/external"
	"mailboxd/internal/running/runner"
)

// Formats of the host of an agent that is no program. Only an agent with a Service has one.
const (
	Service Format = "service" // an AgentTaskResult or its output, of an HTTP service; metered
	Tool    Format = "tool"    // what a tool of an MCP server returns
	A2A     Format = "a2a"     // what an agent of A2A hands over
)

// formatOf returns the format of a service.
func formatOf(s task.Service) Format {
	switch {
	case s.Server != "":
		return Tool
	case s.Mode == task.ServiceA2A:
		return A2A
	}
	return Service
}

// checkService refuses what only a program has.
func (b Binding) checkService() *FieldError {
	s := b.Service
	if s == nil {
		return nil
	}
	part := s.Section()
	switch {
	case b.Profile != "" || b.Permission != "" || b.Model != "":
		return wrong("profile", "profile, permission and model are for a program, not for %s", part)
	case len(b.Command) > 0 || b.Worker != nil || b.Inbox != nil:
		return wrong(part, "an agent has exec, worker, inbox, http, a2a, mcp or remote, one of them")
	case b.Worktree || b.Cwd != "" || len(b.Workdirs) > 0:
		return wrong("exec", "cwd, workdirs and worktree are for a program, not for %s", part)
	case b.Sandbox.Active():
		return wrong("sandbox", "is for a program, not for %s", part)
	case b.Speaks() != envelope.AINL:
		return wrong("dialect", "an agent with %s gets requests in ainl", part)
	}
	return nil
}

// hostArgv returns the command of the host of a service. With an approval, an agent of A2A has to have the card that
// its plan names.
func hostArgv(s task.Service, plan jsontext.Value) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var approved struct {
		Service struct {
			Card string `json:"card"`
		} `json:"service"`
	}
	if plan != nil {
		err = json.Unmarshal(plan, &approved, lenient)
	}
	if s.Card = approved.Service.Card; err != nil {
		return nil, fmt.Errorf("read the approved plan: %w", err)
	}
	args, err := external.Arguments(s)
	return append([]string{self}, args...), err
}

// prepareHost gives the host of a run what others than its agent said, and what an earlier run sent.
func prepareHost(j task.Job, s task.Service) error {
	if s.Mode == task.ServiceA2A {
		said := []string{}
		for _, m := range j.Conversation {
			if m.From != j.Task.Agent && m.Text != "" {
				said = append(said, m.Text)
			}
		}
		text, err := json.Marshal(said, lenient)
		if err == nil {
			err = create(inDir(j, external.SaidFile), text)
		}
		if err != nil {
			return err
		}
	}
	return carryRecord(j)
}

// carryRecord gives a run what an earlier run of the same task sent and got no answer to. The
// directories of the attempts lie beside each other.
func carryRecord(j task.Job) error {
	for attempt := j.Attempt - 1; attempt > 0; attempt-- {
		earlier := filepath.Join(filepath.Dir(j.Dir), fmt.Sprintf("%d.%d", j.Revision, attempt))
		_, known, err := external.ReadRecord(earlier)
		if err != nil {
			return fmt.Errorf("read what attempt %d sent: %w", attempt, err)
		}
		if known {
			return external.Carry(earlier, j.Dir)
		}
	}
	return nil
}

// readService reads what the host of a run printed.
func (b Binding) readService(j task.Job) (answer, error) {
	f, err := openRegular(j.Dir, runner.StdoutFile)
	if errors.Is(err, fs.ErrNotExist) {
		return answer{}, errNothing
	}
	if err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	defer f.close()
	raw, err := readObject(f)
	if err != nil {
		return answer{}, err
	}
	var r external.Result
	if err := json.Unmarshal(raw, &r, lenient); err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	switch {
	case r.Kind != "":
		reply := answer{again: r.Again, retryAfter: time.Duration(r.RetryAfter) * time.Second}
		reply.blocker = b.Output.refusedWith(r.Status, "")
		reply.result.Status, reply.result.Error = envelope.Failed, envelope.Error{Kind: r.Kind, Message: short(r.Message)}
		return reply, nil
	case r.Question != "":
		asks := envelope.Message{ // AINL has no questions
			Dialect: envelope.CLowl, Act: envelope.Asks, Type: "question", Task: j.Task.ID, From: j.Task.Agent, To: []string{j.Task.Requester},
			Text: r.Question,
		}
		reply := answer{hold: task.Reply, messages: []envelope.Message{asks}}
		reply.result.Status, reply.result.Output.Summary = envelope.Partial, "The agent waits for a reply: "+short(r.Question)
		return reply, nil
	case r.Answer == nil:
		return answer{result: envelope.Result{Output: envelope.Output{Summary: cutText([]byte(r.Text))}}}, nil
	case b.Output == Tool:
		return decodeOutput(r.Answer)
	}
	return decodeAnswer(r.Answer)
}

// A sentState is what is known of the request of a run that died.
type sentState int

const (
	sentUnknown sentState = iota // it may have been sent, and nothing says where its answer is
	sentNothing                  // nothing was sent
	sentPlaced                   // the service said where its answer will be
)

// sent returns what a run sent, and says it. A directory that is gone says nothing.
func sent(j task.Job) (sentState, external.Record) {
	r, known, err := external.ReadRecord(j.Dir)
	_, missing := os.Stat(j.Dir)
	switch {
	case err != nil || missing != nil:
		return sentUnknown, external.Record{}
	case !known:
		return sentNothing, r
	case r.Placed() != "":
		return sentPlaced, r
	}
	return sentUnknown, r
}

// serviceFailure returns the failure of a run whose host died: none if it had printed the answer.
func (b Binding) serviceFailure(j task.Job, reply answer, failure envelope.Error) envelope.Error {
	if b.Service == nil || failure.Kind != envelope.AgentCrashed && failure.Kind != envelope.RunLost {
		return failure
	}
	if reply.err == nil && failure.Kind == envelope.AgentCrashed {
		return envelope.Error{}
	}
	state, r := sent(j)
	switch {
	case r.Answered:
		failure.Message += "; " + cmp.Or(reply.result.Error.Message, "the service has answered")
	case state == sentNothing:
		failure.Message += "; nothing was sent to the service"
	case state == sentPlaced:
		failure.Message += "; the service has the request, and its answer will be at " + r.Placed()
	case b.Idempotent:
		failure.Message += "; the request may have been sent, and the agent is idempotent"
	case r.Sent.IsZero():
		failure.Kind, failure.Message = envelope.RunLost, failure.Message+"; it isn't known what was sent"
	default:
		failure.Kind, failure.Message = envelope.RunLost, failure.Message+"; "+r.Unknown()
	}
	failure.Message = short(failure.Message)
	return failure
}

// mayAskAgain reports whether the host of another attempt can do what that of a dead run left.
func (b Binding) mayAskAgain(j task.Job) bool {
	state, _ := sent(j)
	return b.Service != nil && state != sentUnknown
}

// ToolsOf lists the tools of the server in Service, which gets the variables of Env. It starts the
// server as a run does, and calls no tool.
func ToolsOf(ctx context.Context, b Binding) ([]string, error) {
	env, wrong := inherit(b.Env, os.LookupEnv)
	if wrong != nil {
		return nil, wrong
	}
	return external.Tools(ctx, *b.Service, env, os.Getenv(b.Service.BearerEnv))
}
