package dispatch

import (
	"fmt"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/task"
)

// cancelBelow has a task cancelled that the agent of a turn asked for, or that is part
// of one (CLOWL-27). The agent is told when that is done, or why it is not.
func (d *Dispatcher) cancelBelow(tx *transaction, t *turn, about task.Task, m envelope.Message) error {
	may, err := mayCancel(tx, about, t.row.Agent)
	if err != nil {
		return err
	}
	record, why := recordOf(m, task.ByRun, about.Seq, t.at), envelope.Failure{}
	record.Act = envelope.Cancels
	switch {
	case about.Seq == t.row.Seq:
		why = unknownTask(m)
	case !may:
		why = dialect.FailureOf(envelope.Unauthorized, fmt.Sprintf("%s did not ask for %s", t.row.Agent, about.ID))
	case about.State == task.Done:
		why = dialect.FailureOf(envelope.DuplicateConflict, fmt.Sprintf("%s is over already (%s)", about.ID, about.Status))
	}
	if why.Message != "" {
		record.Task = 0 // it cancels nothing, at no start either
	} else {
		talk, _, err := tx.Talk(about.Seq)
		if err != nil {
			return err
		}
		record.Cause = talk.Message // by which whoever tells of the end finds it
	}
	if _, err := tx.Record(record); err != nil {
		return err
	}
	if why.Message == "" {
		tx.cancelAfter(about.Seq, m)
		return nil
	}
	return d.emit(tx, m.Dialect, envelope.Message{
		Act: envelope.Fails, Task: t.row.ID, Cause: m.ID, Thread: m.Thread, Trace: m.Trace, Type: "error", Text: why.Message, Failure: why,
		From: envelope.Ourselves, To: []string{t.row.Agent}, Time: t.at,
	}, t.row.Seq, d.inboxOf(t.row.Agent))
}
