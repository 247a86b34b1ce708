package gateway

import (
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
)

// stateOf returns the state of a task in the protocol, and why it is in it; "" if the result says why. It
// depends on the task alone, so that the state after a restart is the one before.
func stateOf(t client.Task) (state a2a.TaskState, why string) {
	switch t.State {
	case task.Done:
		return ended(t.Status, t.Kind), ""
	case task.Held:
		return held(t.Held)
	}
	return a2a.TaskStateWorking, working[t.State]
}

// working says why a task that is neither held nor done is not over.
var working = map[task.State]string{
	task.Received: "An earlier revision of it is still running.",
	task.Queued:   "It waits for a free slot.",
	task.Running:  "Its agent is at work.",
	task.Waiting:  "It is in the inbox of its agent.",
	task.Review:   "Its answer waits for an approval.",
}

// held is the state of a held task: a reply is all that a client can give.
func held(reasons []task.Reason) (a2a.TaskState, string) {
	var why []string
	for _, f := range task.FactsOf(reasons) {
		why = append(why, f.Sentence)
	}
	words := strings.Join(why, " ")
	switch {
	case task.EndedBy(reasons, task.Answer):
		return a2a.TaskStateInputRequired, words
	case slices.Contains(reasons, task.AuthRequired):
		return a2a.TaskStateAuthRequired, words
	}
	return a2a.TaskStateWorking, words
}

// ended is the state of a task that is done. An agent's own word for a status is neither a refusal nor a
// cancellation, so its error decides.
func ended(status envelope.Status, kind envelope.Kind) a2a.TaskState {
	switch status {
	case envelope.OK, envelope.Partial:
		return a2a.TaskStateCompleted
	case envelope.Stopped:
		return a2a.TaskStateCanceled
	case envelope.Rejected:
		return a2a.TaskStateRejected
	case envelope.Failed:
		return a2a.TaskStateFailed
	}
	if kind != "" {
		return a2a.TaskStateFailed
	}
	return a2a.TaskStateCompleted
}

// interrupted reports whether a task waits for its client: a send that waits ends there.
func interrupted(s a2a.TaskState) bool {
	return s.Terminal() || s == a2a.TaskStateInputRequired || s == a2a.TaskStateAuthRequired
}
