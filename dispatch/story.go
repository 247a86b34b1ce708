package dispatch

import (
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/task"
	"mailboxd/mailbox"
)

// event is one line of a task's story in the ledger.
func event(row task.Task, kind task.Kind, data map[string]any) task.Event {
	e := task.Event{Time: time.Now(), Task: row.ID, Revision: row.Revision, Of: row.Seq, Kind: kind}
	if len(data) > 0 {
		e.Data = fields(data)
	}
	return e
}

// encode never fails: what we put into events are strings, numbers and lists.
func encode(data any) []byte {
	text, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		panic("encode event: " + err.Error())
	}
	return text
}

// contradiction is the story of an id that comes with other content than before.
func contradiction(c *submission, last task.Task) task.Event {
	return event(last, task.KindTaskDuplicateConflict, map[string]any{
		"kind": envelope.DuplicateConflict, "hash": c.task.Hash, "raw": string(c.task.Raw),
		"file": c.line.File, "offset": c.line.Offset,
	})
}

// fileGone is the event of a task file that is not there any more, and of which lines may
// not have been read.
func fileGone(c mailbox.Cursor) task.Event {
	return event(task.Task{}, task.KindFileGone, map[string]any{"file": c.Path, "offset": c.Offset})
}

// unknownSender is the event of a message of somebody whom nobody here knows.
func unknownSender(c *submission) task.Event {
	m := c.inbound.message
	data := map[string]any{"from": m.From}
	if m.ID != "" {
		data["message_id"] = m.ID
	}
	if c.line.File != "" {
		data["file"], data["offset"] = c.line.File, c.line.Offset
	}
	return event(c.row, task.KindMessageUnknownSender, data)
}

// lineRejected is the story of a line that names no task.
func lineRejected(c *submission) task.Event {
	return event(task.Task{}, task.KindLineRejected, map[string]any{
		"file": c.line.File, "offset": c.line.Offset, "length": c.line.Length,
		"sha256": c.task.Hash, "reasons": c.verdict.Findings.Refusals().Words(),
	})
}
