package gateway_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
)

func TestAClientSendsReadsListsAndCancelsInBothBindings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, binding := range bindings {
		t.Run(string(binding), func(t *testing.T) {
			c := w.login("acme", binding)
			sent := message("echo", "Say it.")
			sent.ContextID = "context of " + string(binding)
			done := w.send(c, sent, false)
			if done.Status.State != a2a.TaskStateCompleted || artifact(done) != "done" || done.ContextID != sent.ContextID {
				t.Errorf("SendMessage = %s, %q in the context %q; want it completed with the answer", done.Status.State, artifact(done), done.ContextID)
			}
			again, err := c.GetTask(t.Context(), &a2a.GetTaskRequest{ID: done.ID})
			if err != nil || again.Status.State != a2a.TaskStateCompleted || artifact(again) != "done" {
				t.Errorf("GetTask = %+v, %v; want the same task", again, err)
			}
			open := w.send(c, message("waiting", "Wait."), true)
			cancelled, err := c.CancelTask(t.Context(), &a2a.CancelTaskRequest{ID: open.ID})
			if err != nil || cancelled.Status.State != a2a.TaskStateCanceled {
				t.Errorf("CancelTask = %+v, %v; want it cancelled", cancelled, err)
			}
			if _, err := c.CancelTask(t.Context(), &a2a.CancelTaskRequest{ID: open.ID}); !errors.Is(err, a2a.ErrTaskNotCancelable) {
				t.Errorf("CancelTask again = %v; want %v", err, a2a.ErrTaskNotCancelable)
			}
			list, err := c.ListTasks(t.Context(), &a2a.ListTasksRequest{ContextID: sent.ContextID, IncludeArtifacts: true})
			if err != nil || len(list.Tasks) != 1 || list.TotalSize != 1 || list.Tasks[0].ID != done.ID || artifact(list.Tasks[0]) != "done" {
				t.Errorf("ListTasks of the context = %+v, %v; want the task", list, err)
			}
			list, err = c.ListTasks(t.Context(), &a2a.ListTasksRequest{Status: a2a.TaskStateCanceled, PageSize: 1})
			if err != nil || len(list.Tasks) != 1 || list.Tasks[0].ID != open.ID {
				t.Errorf("ListTasks of cancelled tasks = %+v, %v; want the newest one", list, err)
			}
			_, err = c.CreateTaskPushConfig(t.Context(), &a2a.PushConfig{TaskID: done.ID, URL: "http://127.0.0.1/"})
			if !errors.Is(err, a2a.ErrPushNotificationNotSupported) {
				t.Errorf("CreateTaskPushConfig = %v; want %v", err, a2a.ErrPushNotificationNotSupported)
			}
		})
	}
}

func TestPagesOfAListHaveEachTaskOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.login("acme", a2a.TransportProtocolHTTPJSON)
	sent := map[a2a.TaskID]bool{}
	for range 5 {
		sent[w.send(c, message("echo", "Say it."), true).ID] = true
	}
	for token, pages := "", 0; ; pages++ {
		page, err := c.ListTasks(t.Context(), &a2a.ListTasksRequest{PageSize: 2, PageToken: token})
		if err != nil || page.TotalSize != 5 || len(page.Tasks) > 2 {
			t.Fatalf("page %d = %+v, %v; want at most 2 of 5 tasks", pages, page, err)
		}
		for _, one := range page.Tasks {
			if !sent[one.ID] {
				t.Errorf("page %d has %s again, or it was never sent", pages, one.ID)
			}
			delete(sent, one.ID)
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	if len(sent) > 0 {
		t.Errorf("no page has %v", sent)
	}
}

func TestARepeatedMessageIsTheSameTaskAndRunsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.login("acme", a2a.TransportProtocolJSONRPC)
	same := message("echo", "Say it.")
	ids, all := make([]a2a.TaskID, 8), sync.WaitGroup{}
	for i := range ids {
		all.Go(func() { ids[i] = w.send(c, same, i%2 == 0).ID })
	}
	all.Wait()
	w.restart()
	changed := message("echo", "Say something else.")
	changed.ID = same.ID
	ids = append(ids, w.send(c, changed, false).ID)
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("the tasks of one message are %v; want one", ids)
		}
	}
	other := w.send(w.login("other", a2a.TransportProtocolJSONRPC), same, false)
	if other.ID == ids[0] {
		t.Errorf("the same message of another sender is the task %s, too", other.ID)
	}
	w.do(func(daemon *client.Client) error {
		file, err := daemon.Details(t.Context(), envelope.ID(ids[0]))
		if len(file.Runs) != 1 || file.Task.Revision != 1 {
			t.Errorf("the task has %d runs and revision %d; want one run", len(file.Runs), file.Task.Revision)
		}
		return err
	})
}

func TestAStreamHasTheTaskThenItsAnswerThenItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, binding := range bindings {
		var got []string
		send := &a2a.SendMessageRequest{Message: message("echo", "Say it.")}
		for e, err := range w.login("acme", binding).SendStreamingMessage(t.Context(), send) {
			if err != nil {
				t.Fatal(err)
			}
			switch e := e.(type) {
			case *a2a.Task:
				got = append(got, "task")
				if e.Status.State.Terminal() { // it was over before the first look
					got = append(got, "answer "+artifact(e), string(e.Status.State))
				}
			case *a2a.TaskArtifactUpdateEvent:
				got = append(got, "answer "+e.Artifact.Parts[0].Text())
			case *a2a.TaskStatusUpdateEvent:
				if e.Status.State.Terminal() {
					got = append(got, string(e.Status.State))
				}
			}
		}
		if want := "task, answer done, TASK_STATE_COMPLETED"; strings.Join(got, ", ") != want {
			t.Errorf("%s: the stream has %q; want %s", binding, got, want)
		}
	}
}

func TestAClientThatSubscribesAgainAfterARestartGetsTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, binding := range bindings {
		_ = os.Remove(filepath.Join(w.dir, "go")) // that of the binding before
		c := w.login("acme", binding)
		open := w.send(c, message("waiting", "Wait."), true)
		first := true
		for _, err := range c.SubscribeToTask(t.Context(), &a2a.SubscribeToTaskRequest{ID: open.ID}) {
			if first && err != nil {
				t.Fatalf("%s: subscribe: %v", binding, err)
			}
			if first {
				first = false
				w.restart() // ends the stream
			}
		}
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		end, answer := a2a.TaskState(""), ""
		for e, err := range c.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: open.ID}) {
			if err != nil {
				t.Fatalf("%s: subscribe again: %v", binding, err)
			}
			switch e := e.(type) {
			case *a2a.Task:
				w.write("go", "")
			case *a2a.TaskArtifactUpdateEvent:
				answer = e.Artifact.Parts[0].Text()
			case *a2a.TaskStatusUpdateEvent:
				end = e.Status.State
			}
		}
		if end != a2a.TaskStateCompleted || answer != "gone" {
			t.Errorf("%s: the rest is %q with the answer %q; want it completed", binding, end, answer)
		}
		for _, err := range c.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: open.ID}) {
			if !errors.Is(err, a2a.ErrUnsupportedOperation) {
				t.Errorf("%s: subscribe to a task that is over = %v; want %v", binding, err, a2a.ErrUnsupportedOperation)
			}
		}
	}
}

func TestASubscriptionOutlastsTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.login("acme", a2a.TransportProtocolHTTPJSON)
	open := w.send(c, message("waiting", "Wait."), true)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	end := a2a.TaskState("")
	for e, err := range c.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: open.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case *a2a.Task:
			w.stop(w.daemon)
			w.serve()
			w.write("go", "")
		case *a2a.TaskStatusUpdateEvent:
			end = e.Status.State
		}
	}
	if end != a2a.TaskStateCompleted {
		t.Errorf("the stream ends with %q; want it completed", end)
	}
}
