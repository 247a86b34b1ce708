package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"golang.org/x/sync/errgroup"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/testtools/slowtest"
)

// A journey is what becomes of a task: its agent, then the state after each step.
type journey struct {
	agent  string
	sent   a2a.TaskState
	step   func(*world, *a2aclient.Client, *a2a.Task) error // nil: none
	states []a2a.TaskState                                  // after the step
	says   string                                           // the reason before the step
}

// journeys are those of the test, by name.
var journeys = map[string]journey{
	"held": {"approved", a2a.TaskStateWorking, nil, nil, "It needs an approval."},
	"approved": {"approved", a2a.TaskStateWorking, func(w *world, _ *a2aclient.Client, t *a2a.Task) error {
		return w.decide(t, (*client.Client).Approve)
	}, []a2a.TaskState{a2a.TaskStateCompleted}, "It needs an approval."},
	"denied": {"approved", a2a.TaskStateWorking, func(w *world, _ *a2aclient.Client, t *a2a.Task) error {
		return w.decide(t, (*client.Client).Deny)
	}, []a2a.TaskState{a2a.TaskStateRejected}, "It needs an approval."},
	"cancelled": {"approved", a2a.TaskStateWorking, func(w *world, c *a2aclient.Client, t *a2a.Task) error {
		_, err := c.CancelTask(w.t.Context(), &a2a.CancelTaskRequest{ID: t.ID})
		return err
	}, []a2a.TaskState{a2a.TaskStateCanceled}, "It needs an approval."},
	"failed": {"failing", a2a.TaskStateFailed, nil, nil, ""},
	"asking": {"asking", a2a.TaskStateInputRequired, func(w *world, c *a2aclient.Client, t *a2a.Task) error {
		m := a2a.NewMessageForTask(a2a.MessageRoleUser, t, a2a.NewTextPart("Berlin"))
		_, err := c.SendMessage(w.t.Context(), &a2a.SendMessageRequest{Message: m})
		return err
	}, []a2a.TaskState{a2a.TaskStateCompleted}, "Which city?"},
}

// decide decides about a task as the person does.
func (w *world) decide(t *a2a.Task, how func(*client.Client, context.Context, envelope.ID, client.Decision) (client.Task, error)) error {
	r, daemon, err := w.at.Connect(w.t.Context())
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = how(daemon, w.t.Context(), envelope.ID(t.ID), client.Decision{Unseen: true, Note: "as the test wants it"})
	return err
}

// each calls f for each of some tasks, several at a time.
func each(t *testing.T, tasks []*traveller, f func(*traveller) error) {
	t.Helper()
	var work errgroup.Group
	work.SetLimit(8)
	for _, one := range tasks {
		work.Go(func() error { return f(one) })
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
}

// A traveller is a task with its journey.
type traveller struct {
	journey
	name string
	task *a2a.Task
	last a2a.TaskState
}

func TestTheStateOfEachTaskIsThatOfTheTableAtEachStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all []*traveller
	names := []string{"held", "approved", "denied", "cancelled", "failed", "asking"}
	for i := range slowtest.Times(200) {
		name := names[i%len(names)]
		all = append(all, &traveller{journey: journeys[name], name: name})
	}
	c := w.login("acme", a2a.TransportProtocolJSONRPC)
	each(t, all, func(one *traveller) error {
		got, err := c.SendMessage(t.Context(), &a2a.SendMessageRequest{
			Message: message(one.agent, one.name), Config: &a2a.SendMessageConfig{ReturnImmediately: one.sent == a2a.TaskStateWorking},
		})
		if err == nil {
			one.task, one.last = got.(*a2a.Task), one.sent
		}
		return err
	})
	look := func(when string) {
		t.Helper()
		each(t, all, func(one *traveller) error {
			got, err := c.GetTask(t.Context(), &a2a.GetTaskRequest{ID: one.task.ID})
			if err != nil {
				return err
			}
			if got.Status.State != one.last || one.last == one.sent && one.says != "" && words(got) != one.says {
				return fmt.Errorf("%s, a task to be %s is %s, %q; want %s, %q", when, one.name, got.Status.State, words(got), one.last, one.says)
			}
			return nil
		})
	}
	look("after it was sent")
	w.restart()
	look("after a restart")
	each(t, all, func(one *traveller) error {
		if one.step == nil {
			return nil
		}
		one.last = one.states[len(one.states)-1]
		return one.step(w, c, one.task)
	})
	for _, one := range all {
		if one.last != one.sent && !slices.Contains([]string{"cancelled", "denied"}, one.name) { // these are over at once
			w.finish(c, one.task)
		}
	}
	look("after its step")
	w.restart()
	look("after its step and a restart")
}

// finish waits for the end of a task.
func (w *world) finish(c *a2aclient.Client, t *a2a.Task) {
	w.t.Helper()
	for _, err := range c.SubscribeToTask(w.t.Context(), &a2a.SubscribeToTaskRequest{ID: t.ID}) {
		_ = err // it may be over already; the look finds out
	}
}

func TestATaskWhoseAgentNeedsALoginSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.send(w.login("acme", a2a.TransportProtocolJSONRPC), message("login", "Do it."), false)
	if got.Status.State != a2a.TaskStateAuthRequired || words(got) != "Its agent needs a login." {
		t.Errorf("the task is %s, %q; want %s", got.Status.State, words(got), a2a.TaskStateAuthRequired)
	}
}

func TestAReplyThatComesTwiceIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.login("acme", a2a.TransportProtocolJSONRPC)
	asked := w.send(c, message("asking", "What is the weather?"), false)
	if asked.Status.State != a2a.TaskStateInputRequired || words(asked) != "Which city?" {
		t.Fatalf("the task is %s, %q; want the question", asked.Status.State, words(asked))
	}
	wrong := a2a.NewMessageForTask(a2a.MessageRoleUser, asked, a2a.NewTextPart("Paris"))
	if again := w.send(c, wrong, false); again.Status.State != a2a.TaskStateInputRequired {
		t.Fatalf("after a reply that says too little, the task is %s; want the question again", again.Status.State)
	}
	if again := w.send(c, wrong, false); again.Status.State != a2a.TaskStateInputRequired {
		t.Errorf("after the same message, the task is %s; want the question still", again.Status.State)
	}
	done := w.send(c, a2a.NewMessageForTask(a2a.MessageRoleUser, asked, a2a.NewTextPart("Berlin")), false)
	if done.Status.State != a2a.TaskStateCompleted || artifact(done) != "It rains there." {
		t.Errorf("after the reply, the task is %s, %q; want its answer", done.Status.State, artifact(done))
	}
	w.do(func(daemon *client.Client) error {
		file, err := daemon.Details(t.Context(), envelope.ID(asked.ID))
		if len(file.Runs) != 3 {
			t.Errorf("the task has %d runs; want 3, one for each message", len(file.Runs))
		}
		return err
	})
}
