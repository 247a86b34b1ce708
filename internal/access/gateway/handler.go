package gateway

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
)

// callIn returns the call of a method. It refuses another version of the protocol.
func callIn(ctx context.Context) (call, error) {
	c, ok := ctx.Value(callKey{}).(call)
	if !ok {
		return call{}, a2a.ErrUnauthenticated // no request comes here without its sender
	}
	if of, ok := a2asrv.CallContextFrom(ctx); ok {
		if versions, _ := of.ServiceParams().Get(a2a.SvcParamVersion); len(versions) > 0 && versions[0] != string(a2a.Version) {
			return call{}, a2a.NewError(a2a.ErrVersionNotSupported, fmt.Sprintf("this gateway speaks version %s of the protocol", a2a.Version))
		}
	}
	return c, nil
}

// GetTask returns a task of the sender.
func (s *server) GetTask(ctx context.Context, req *a2a.GetTaskRequest) (*a2a.Task, error) {
	c, err := callIn(ctx)
	if err != nil {
		return nil, err
	}
	return s.get(ctx, c, req.ID)
}

func (s *server) get(ctx context.Context, c call, id a2a.TaskID) (*a2a.Task, error) {
	file, err := s.own(ctx, c, id)
	if err != nil {
		return nil, err
	}
	return s.show(ctx, file)
}

// CancelTask cancels a task of the sender. It returns when nothing of its run is left, or after a time.
func (s *server) CancelTask(ctx context.Context, req *a2a.CancelTaskRequest) (*a2a.Task, error) {
	c, err := callIn(ctx)
	if err != nil {
		return nil, err
	}
	file, err := s.own(ctx, c, req.ID)
	if err != nil {
		return nil, err
	}
	if file.Task.State == task.Done {
		return nil, a2a.ErrTaskNotCancelable
	}
	err = s.daemon.use(ctx, func(d daemon) error {
		_, err := d.Cancel(ctx, file.Task.ID, client.ControlOptions{Reason: "asked for by the sender " + c.sender.Name, Timeout: "30s"})
		return err
	})
	said, answered := errors.AsType[*client.Error](err)
	switch {
	case answered && said.Kind == client.Conflict:
		return nil, a2a.ErrTaskNotCancelable
	case err != nil && !(answered && said.Kind == client.Unfinished):
		return nil, s.failure(err)
	}
	return s.get(ctx, c, req.ID)
}

// SendMessage sends a message, and waits until its task is over or waits for the client, unless the client
// doesn't want to.
func (s *server) SendMessage(ctx context.Context, req *a2a.SendMessageRequest) (a2a.SendMessageResult, error) {
	c, err := callIn(ctx)
	if err != nil {
		return nil, err
	}
	id, err := s.submit(ctx, c, req)
	if err != nil {
		return nil, err
	}
	var last *a2a.Task
	err = s.follow(ctx, c, id, func(t *a2a.Task) bool {
		last = t
		return interrupted(t.Status.State) || req.Config != nil && req.Config.ReturnImmediately
	})
	if err != nil {
		return nil, err
	}
	return last, nil
}

// follow calls each with a task now, and again after each change of it, until each returns true.
func (s *server) follow(ctx context.Context, c call, id envelope.ID, each func(*a2a.Task) (done bool)) error {
	err := s.changes.await(ctx, id, func() (bool, error) {
		t, err := s.get(ctx, c, a2a.TaskID(id))
		return err == nil && each(t), err
	})
	if err != nil && context.Cause(ctx) != nil {
		return a2a.NewError(a2a.ErrServerError, "the gateway ends; ask for the task again")
	}
	return err
}

// SendStreamingMessage sends a message, and returns what becomes of its task until the task is over or waits
// for the client.
func (s *server) SendStreamingMessage(ctx context.Context, req *a2a.SendMessageRequest) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		c, err := callIn(ctx)
		var id envelope.ID
		if err == nil {
			id, err = s.submit(ctx, c, req)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		s.stream(ctx, c, id, interrupted, yield)
	}
}

// SubscribeToTask returns a task, and what becomes of it until it is over.
func (s *server) SubscribeToTask(ctx context.Context, req *a2a.SubscribeToTaskRequest) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		c, err := callIn(ctx)
		if err == nil {
			err = s.maySubscribe(ctx, c, req.ID)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		s.stream(ctx, c, envelope.ID(req.ID), a2a.TaskState.Terminal, yield)
	}
}

// maySubscribe returns why the sender can't subscribe to a task: it is not one of the sender, or it is over.
func (s *server) maySubscribe(ctx context.Context, c call, id a2a.TaskID) error {
	file, err := s.own(ctx, c, id)
	if state, _ := stateOf(file.Task); err == nil && state.Terminal() {
		err = a2a.NewError(a2a.ErrUnsupportedOperation, fmt.Sprintf("the task is over: its state is %s", state))
	}
	return err
}

// subscription refuses a subscription of HTTP+JSON with its status. The library has begun the stream, with the
// status 200, before it calls SubscribeToTask.
func (s *server) subscription(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, subscribes := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/tasks/"), ":subscribe")
		c, err := callIn(r.Context())
		if err == nil && subscribes {
			err = s.maySubscribe(r.Context(), c, a2a.TaskID(id))
		}
		switch {
		case errors.Is(err, a2a.ErrTaskNotFound):
			refuse(w, r, noTask)
		case errors.Is(err, a2a.ErrUnsupportedOperation):
			refuse(w, r, isOver.with(err.Error()))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// stream yields a task, then each other state or reason of it, until a state is the last one. The artifacts come before
// the state in which the task is over.
func (s *server) stream(ctx context.Context, c call, id envelope.ID, last func(a2a.TaskState) bool, yield func(a2a.Event, error) bool) {
	var before *a2a.Task
	gone := false
	err := s.follow(ctx, c, id, func(t *a2a.Task) bool {
		for _, e := range news(before, t) {
			if gone = gone || !yield(e, nil); gone {
				return true
			}
		}
		before = t
		return last(t.Status.State)
	})
	if err != nil && !gone {
		yield(nil, err)
	}
}

// news are the events that tell a client what is new about a task; without an earlier look, the task itself.
func news(before, now *a2a.Task) (events []a2a.Event) {
	if before == nil {
		return []a2a.Event{now}
	}
	if before.Status.State == now.Status.State && wordsOf(before) == wordsOf(now) {
		return nil
	}
	for _, artifact := range now.Artifacts {
		events = append(events, &a2a.TaskArtifactUpdateEvent{TaskID: now.ID, ContextID: now.ContextID, Artifact: artifact, LastChunk: true})
	}
	return append(events, &a2a.TaskStatusUpdateEvent{TaskID: now.ID, ContextID: now.ContextID, Status: now.Status})
}

// wordsOf says why a task is in its state.
func wordsOf(t *a2a.Task) string {
	if t.Status.Message == nil {
		return ""
	}
	return t.Status.Message.Parts[0].Text()
}

// GetTaskPushConfig is not supported: clients subscribe.
func (s *server) GetTaskPushConfig(context.Context, *a2a.GetTaskPushConfigRequest) (*a2a.PushConfig, error) {
	return nil, a2a.ErrPushNotificationNotSupported
}

// ListTaskPushConfigs is not supported.
func (s *server) ListTaskPushConfigs(context.Context, *a2a.ListTaskPushConfigRequest) (*a2a.ListTaskPushConfigResponse, error) {
	return nil, a2a.ErrPushNotificationNotSupported
}

// CreateTaskPushConfig is not supported.
func (s *server) CreateTaskPushConfig(context.Context, *a2a.PushConfig) (*a2a.PushConfig, error) {
	return nil, a2a.ErrPushNotificationNotSupported
}

// DeleteTaskPushConfig is not supported.
func (s *server) DeleteTaskPushConfig(context.Context, *a2a.DeleteTaskPushConfigRequest) error {
	return a2a.ErrPushNotificationNotSupported
}
