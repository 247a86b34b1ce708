package compose

import (
	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// Continued returns the request of a task whose session another one can continue: it is done, and
// its request is kept.
func Continued(t client.TaskDetails) (envelope.Task, error) {
	request, err := Request(t)
	if err != nil {
		return envelope.Task{}, err
	}
	if t.Task.State != task.Done {
		return envelope.Task{}, exit.With(exit.Failed, "task %s is %s: its session can be continued when it is done; see: %s", t.Task.ID, t.Task.State, view.Command("wait", t.Task.ID))
	}
	before, _ := envelope.DecodeTask(request, envelope.Legacy)
	return before, nil
}

// Continue returns a request that continues the session of an earlier task.
func Continue(request []byte, earlier envelope.ID) ([]byte, error) {
	members, err := membersOf(request)
	if err != nil {
		return nil, err
	}
	metadata, ok := members["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
	}
	metadata[envelope.ContinueKey] = string(earlier)
	members["metadata"] = metadata
	return envelope.RequestLine(members)
}
