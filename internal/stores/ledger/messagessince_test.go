package ledger_test

import (
	"errors"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// What an agent has not heard yet is what others said to it, about its task and
// those below, since it was last handed the conversation.
func TestAnAgentHearsWhatOthersHaveSaidSince(t *testing.T) {
	l := open(t)
	root := add(t, l, named("t1", 1, task.Running))[0]
	below := named("t1.1", 1, task.Running)
	below.Parent = root
	child, other := add(t, l, below)[0], add(t, l, named("t2", 1, task.Running))[0]
	row, err := l.Task(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	said := func(about int64, from, to string, via task.Via, text string) task.Message {
		return task.Message{Time: noon, Act: envelope.Informs, Task: about, From: from, To: to, Via: via, Hash: text, Body: []byte(text)}
	}
	update(t, l, func(tx *ledger.Tx) error {
		first, err := tx.Record(said(root, "user", row.Agent, task.ByLine, "before"))
		for _, m := range []task.Message{
			said(root, "user", row.Agent, task.ByLine, "about it"), said(child, "helper", row.Agent, task.ByRun, "about what is below"),
			said(root, row.Agent, "user", task.ByRun, "its own"), said(root, "user", row.Agent, task.ByDaemon, "ours"),
			said(other, "user", row.Agent, task.ByLine, "about another"), said(root, "user", "somebody", task.ByLine, "to another"),
		} {
			_, failed := tx.Record(m)
			err = errors.Join(err, failed)
		}
		received, failed := tx.MessagesSince(row, first)
		if len(received) != 2 || received[0].Hash != "about it" || received[1].Hash != "about what is below" {
			t.Errorf("HeardSince() = %+v; want what was said to it about t1 and t1.1", received)
		}
		return errors.Join(err, failed)
	})
}

func TestTurnsAreCountedByTheirRuns(t *testing.T) {
	l := open(t)
	seq := add(t, l, named("t1", 1, task.Running))[0]
	update(t, l, func(tx *ledger.Tx) error {
		for attempt, cause := range []task.Cause{task.CauseNoAnswer, "timeout", task.CauseNoAnswer} {
			run := task.Run{Task: seq, Attempt: attempt + 1, ID: string(cause), Intent: noon, Finished: noon.Add(time.Second), Cause: cause}
			if err := errors.Join(tx.StartRun(run), tx.FinishRun(run)); err != nil {
				return err
			}
		}
		n, err := tx.CountRuns(seq, task.CauseNoAnswer)
		if n != 2 {
			t.Errorf("Spoken() = %d; want 2", n)
		}
		return err
	})
}
