package remote

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
)

// An Agent is one that is asked by its card.
type Agent struct {
	client  *a2aclient.Client
	streams bool
}

// Connect returns the agent of a card. It sends nothing.
func (c Card) Connect(ctx context.Context, client *http.Client) (*Agent, error) {
	made, err := a2aclient.NewFromEndpoints(ctx, []*a2a.AgentInterface{c.At},
		a2aclient.WithJSONRPCTransport(client), a2aclient.WithRESTTransport(client))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCard, err)
	}
	return &Agent{client: made, streams: c.Capabilities.Streaming}, nil
}

// Send sends a message once, and returns what comes of it: a message, or a task, which is followed then. It asks for
// no stream: an agent that refuses one doesn't say whether it has taken the message.
func (a *Agent) Send(ctx context.Context, m *a2a.Message) (a2a.SendMessageResult, error) {
	config := &a2a.SendMessageConfig{ReturnImmediately: true}
	return a.client.SendMessage(ctx, &a2a.SendMessageRequest{Message: m, Config: config})
}

// Task returns a task with its messages and artifacts.
func (a *Agent) Task(ctx context.Context, id string) (*a2a.Task, error) {
	return a.client.GetTask(ctx, &a2a.GetTaskRequest{ID: a2a.TaskID(id)})
}

// Follow yields what is new of a task; nothing if the agent has no streams.
func (a *Agent) Follow(ctx context.Context, id string) iter.Seq2[a2a.Event, error] {
	if !a.streams {
		return func(func(a2a.Event, error) bool) {}
	}
	return a.client.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: a2a.TaskID(id)})
}

// Cancel asks for the end of a task.
func (a *Agent) Cancel(ctx context.Context, id string) (*a2a.Task, error) {
	return a.client.CancelTask(ctx, &a2a.CancelTaskRequest{ID: a2a.TaskID(id)})
}

// Status returns the status in an event; nil for none.
func Status(e a2a.Event) *a2a.TaskStatus {
	switch e := e.(type) {
	case *a2a.Task:
		return &e.Status
	case *a2a.TaskStatusUpdateEvent:
		return &e.Status
	}
	return nil
}

// Waits reports whether nothing follows a state by itself: the task has ended, or it waits for its client.
func Waits(s a2a.TaskState) bool {
	return s.Terminal() || s == a2a.TaskStateInputRequired || s == a2a.TaskStateAuthRequired
}

// Words returns the texts of a message, a paragraph each.
func Words(m *a2a.Message) string {
	if m == nil {
		return ""
	}
	return strings.Join(texts(m.Parts), "\n\n")
}

// texts returns the texts among parts.
func texts(parts a2a.ContentParts) (all []string) {
	for _, p := range parts {
		if p != nil && p.Text() != "" {
			all = append(all, p.Text())
		}
	}
	return all
}
