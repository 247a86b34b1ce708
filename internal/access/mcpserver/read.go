package mcpserver

import (
	"context"
	"errors"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// The most tasks and events that are shown at once: each costs a model room.
const (
	fewTasks  = 20
	manyTasks = 100
	fewEvents = 20
)

// listArgs are the arguments of list_tasks.
type listArgs struct {
	State     string `json:"state"`
	Agent     string `json:"agent"`
	Requester string `json:"requester"`
	Limit     *int   `json:"limit"`
}

// A list is the answer of list_tasks.
type list struct {
	Tasks []client.Task `json:"tasks"`
}

func (s *server) listTasks(ctx context.Context, _ call, in listArgs) (list, error) {
	if in.Limit != nil && *in.Limit < 1 {
		return list{}, errors.New("limit: must be at least 1")
	}
	f := client.Filter{Agent: in.Agent, Requester: in.Requester, NewestFirst: true, Limit: fewTasks}
	if in.Limit != nil {
		f.Limit = min(*in.Limit, manyTasks)
	}
	if in.State != "" {
		f.States = []task.State{task.State(in.State)}
	}
	var found list
	err := s.Read(ctx, func(b *client.Client) (err error) {
		if b != nil {
			found.Tasks, err = b.Tasks(ctx, f)
		}
		return err
	})
	return found, err
}

func (s *server) showTask(ctx context.Context, _ call, in taskArgs) (client.TaskDetails, error) {
	id, err := taskID(in.TaskID)
	if err != nil {
		return client.TaskDetails{}, err
	}
	return s.taskDetails(ctx, id)
}

// taskDetails returns what a model may know of a task: not an answer that a person
// has yet to agree to or has kept back, nor the result of an earlier revision.
func (s *server) taskDetails(ctx context.Context, id envelope.ID) (file client.TaskDetails, err error) {
	err = s.Read(ctx, func(b *client.Client) error {
		if b == nil {
			return ledger.ErrUnknown
		}
		file, err = b.Details(ctx, id)
		return err
	})
	if unknown(err) {
		return client.TaskDetails{}, missing(id)
	}
	file.Unshown = nil
	if !file.Task.ResultFinal || len(file.Result) > maxResult {
		file.Result = nil
	}
	file.Events = file.Events[max(0, len(file.Events)-fewEvents):]
	return file, err
}

// cancelArgs are the arguments of cancel_task.
type cancelArgs struct {
	TaskID string `json:"task_id"`
	Reason string `json:"reason"`
}

// An outcome says where a task is after something was done to it.
type outcome struct {
	TaskID envelope.ID     `json:"task_id"`
	State  string          `json:"state"`
	Status envelope.Status `json:"status,omitempty"`
}

func outcomeOf(t client.Task) outcome { return outcome{t.ID, string(t.State), t.Status} }

// patience is how long a tool waits for the daemon to do something.
const patience = 40 * time.Second

func (s *server) cancelTask(ctx context.Context, _ call, in cancelArgs) (outcome, error) {
	id, err := taskID(in.TaskID)
	if err != nil {
		return outcome{}, err
	}
	var task client.Task
	err = s.steer(ctx, func(ctx context.Context, daemon *client.Client) error {
		task, err = daemon.Cancel(ctx, id, client.ControlOptions{Reason: in.Reason, Timeout: patience.String()})
		return err
	})
	return outcomeOf(task), err
}

// steer has the daemon do something, within bounds.
func (s *server) steer(ctx context.Context, do func(context.Context, *client.Client) error) error {
	ctx, stop := context.WithTimeout(ctx, maxWait)
	defer stop()
	daemon, err := s.Daemon(ctx)
	if err != nil {
		return err
	}
	defer daemon.Close()
	return do(ctx, daemon)
}
