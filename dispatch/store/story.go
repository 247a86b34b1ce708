package store

import (
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/task"
)

// Event returns an event of a task that happens now, for the ledger.
func Event(row task.Task, kind task.Kind, data map[string]any) task.Event {
	e := task.Event{Time: time.Now(), Task: row.ID, Revision: row.Revision, Of: row.Seq, Kind: kind}
	if len(data) > 0 {
		e.Data = fields(data)
	}
	return e
}

// Encode returns the data of an event as JSON. It never fails: the data are strings,
// numbers and lists.
func Encode(data any) []byte {
	text, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		panic("encode event: " + err.Error())
	}
	return text
}
