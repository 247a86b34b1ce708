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

// arrival is how a task came in: what is worth remembering of its line.
func arrival(c *claim) task.Event {
	e := event(c.row, task.KindTaskAccepted, nil)
	data := acceptance{Hash: c.task.Hash}
	if warnings := c.verdict.Findings.Warnings(); len(warnings) > 0 {
		data.Warnings = warnings.Words()
	}
	if c.line.File != "" { // what a run asks for stands in no line
		data.File, data.Offset = c.line.File, &c.line.Offset
	}
	if c.parent != nil {
		data.Parent = c.parent.ID
	}
	if c.row.State == task.Held {
		data.Held = c.row.Reasons
	}
	data.Unknown = c.unknown
	e.Data = encode(data)
	return e
}

// An acceptance has its fields in the order that the names of an event's data
// have. There is one for each line: a map of it took twelve allocations.
type acceptance struct {
	File     string        `json:"file,omitzero"`
	Hash     string        `json:"hash"`
	Held     []task.Reason `json:"held,omitzero"`
	Offset   *int64        `json:"offset,omitzero"`
	Parent   envelope.ID   `json:"parent,omitzero"`
	Unknown  []string      `json:"unknown_runs,omitzero"`
	Warnings []string      `json:"warnings,omitzero"`
}

// contradiction is the story of an id that comes with other content than before.
func contradiction(c *claim, last task.Task) task.Event {
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
func unknownSender(c *claim) task.Event {
	m := c.heard.message
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
func lineRejected(c *claim) task.Event {
	return event(task.Task{}, task.KindLineRejected, map[string]any{
		"file": c.line.File, "offset": c.line.Offset, "length": c.line.Length,
		"sha256": c.task.Hash, "reasons": c.verdict.Findings.Refusals().Words(),
	})
}
