package compose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
)

// CanRepeat returns why a task can have no other round after a denial, or nil: its answer was denied
// or waits, and its request is one of AINL that the ledger still has.
func CanRepeat(t client.TaskDetails) error {
	if t.Task.Attempt == 0 {
		return exit.With(exit.Usage, "task %s has not run, so there is nothing to do once more: send it again with another request", t.Task.ID)
	}
	_, err := Request(t)
	return err
}

// Round returns another round of a denied task: its request under a new id, with what the person
// wrote who denied it. It has the same requester, and goes on in the worktree of the task. A deadline
// that has passed and the parent task are left out.
func Round(t client.TaskDetails, id envelope.ID, now time.Time) ([]byte, error) {
	request, err := Request(t)
	if err != nil {
		return nil, err
	}
	denial, err := denialOf(t)
	if err != nil {
		return nil, err
	}
	before, _ := envelope.DecodeTask(request, envelope.Legacy)
	line, _, err := Copy(request, id, before.Requester, now)
	if err != nil {
		return nil, err
	}
	members, err := membersOf(line)
	if err != nil {
		return nil, err
	}
	metadata, ok := members["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
	}
	delete(metadata, envelope.ContinueKey)
	metadata[envelope.RoundKey] = map[string]string{"task_id": string(t.Task.ID), "person": denial.Decider}
	members["metadata"] = metadata
	members["description"] = fmt.Sprintf("%s\n\n%s denied the answer of the task %s, whose work is in the files as it left them. "+
		"Do the task once more, and mind this:\n\n%s",
		before.Description, denial.Decider, t.Task.ID, denial.Note)
	return envelope.RequestLine(members)
}

// denialOf returns the denial of a task.
func denialOf(t client.TaskDetails) (client.Approval, error) {
	for _, a := range slices.Backward(t.Approvals) {
		if a.DeniesTask() && a.Revision == t.Task.Revision {
			return a, nil
		}
	}
	return client.Approval{}, exit.With(exit.Failed, "nobody denied task %s", t.Task.ID)
}

// mostRounds is how many ids of rounds are tried before one that no task can have.
const mostRounds = 100

// RoundID returns an id for another round of a task: t1-2 after t1, and t1-3 after t1-2, or the
// first one after it that no task has.
func RoundID(ctx context.Context, r *reader.Reader, t client.TaskDetails) (envelope.ID, error) {
	for _, id := range roundIDs(t) {
		if _, err := r.Latest(ctx, id); isUnknown(err) {
			return id, nil
		} else if err != nil {
			return "", err
		}
	}
	return envelope.ID(uuid.NewString()), nil
}

// NextRound returns the task that does a denied one once more; "" for none.
func NextRound(ctx context.Context, r *reader.Reader, t client.TaskDetails) (envelope.ID, error) {
	if _, err := denialOf(t); err != nil {
		return "", nil
	}
	for _, id := range roundIDs(t) {
		next, err := r.Details(ctx, id)
		if isUnknown(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		request, _ := envelope.DecodeTask(next.Request, envelope.Legacy)
		if denied, _ := request.RoundOf(); denied == t.Task.ID {
			return id, nil
		}
	}
	return "", nil
}

// roundIDs returns the ids that another round of a task may have, in their order.
func roundIDs(t client.TaskDetails) (ids []envelope.ID) {
	base, number := string(t.Task.ID), 2
	if before, _ := envelope.DecodeTask(t.Request, envelope.Legacy); isRound(before) {
		if name, last, found := cutLast(base, "-"); found {
			if n, err := strconv.Atoi(last); err == nil && n > 1 && n < 1<<20 {
				base, number = name, n+1
			}
		}
	}
	for n := number; n < number+mostRounds; n++ {
		id, err := envelope.ParseID(fmt.Sprintf("%s-%d", base, n))
		if err != nil {
			break // it is too long
		}
		ids = append(ids, id)
	}
	return ids
}

// isUnknown reports whether an error says that there is no task with an id.
func isUnknown(err error) bool {
	said, ok := errors.AsType[*client.Error](err)
	return ok && said.Kind == client.NoTask || exit.CodeOf(err) == exit.NoTask
}

func isRound(t envelope.Task) bool {
	denied, _ := t.RoundOf()
	return denied != ""
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}
