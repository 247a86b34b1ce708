package dispatch

import (
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
)

// event is one line of a task's story in the ledger.
func event(row ledger.Task, kind string, data map[string]any) ledger.Event {
	e := ledger.Event{Time: time.Now(), Task: row.ID, Revision: row.Revision, Of: row.Seq, Kind: kind}
	if len(data) > 0 {
		e.Data = fields(data)
	}
	return e
}

// encode never fails: what we put into events are strings, numbers and lists.
func encode(data map[string]any) []byte {
	text, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		panic("encode event: " + err.Error())
	}
	return text
}

// acceptance is what is worth remembering of how a task came in.
func acceptance(c *claim) map[string]any {
	data := map[string]any{"hash": c.task.Hash}
	if c.line.File != "" { // what a run asks for stands in no line
		data["file"], data["offset"] = c.line.File, c.line.Offset
	}
	if warnings := c.verdict.Findings.Warnings(); len(warnings) > 0 {
		data["warnings"] = warnings.Words()
	}
	if c.parent.Seq != 0 {
		data["parent"] = c.parent.ID
	}
	if c.row.State == ledger.Held {
		data["held"] = c.row.Reasons
	}
	return data
}

// contradiction is the story of an id that comes with other content than before.
func contradiction(c *claim, last ledger.Task) ledger.Event {
	return event(last, "task.duplicate_conflict", map[string]any{
		"kind": envelope.DuplicateConflict, "hash": c.task.Hash, "raw": string(c.task.Raw),
		"file": c.line.File, "offset": c.line.Offset,
	})
}

// lineRejected is the story of a line that names no task.
func lineRejected(c *claim) ledger.Event {
	return event(ledger.Task{}, "line.rejected", map[string]any{
		"file": c.line.File, "offset": c.line.Offset, "length": c.line.Length,
		"sha256": c.task.Hash, "reasons": c.verdict.Findings.Refusals().Words(),
	})
}
