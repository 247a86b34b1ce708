package dispatch

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// reporting takes what the agent of a run says about its progress: it becomes
// part of the story of the task, and its requester is told. It is nil when nobody
// would hear of it.
func (d *Dispatcher) reporting(ctx context.Context, row task.Task) func(envelope.Message) {
	if !spokenOf(row) {
		return nil
	}
	return func(m envelope.Message) {
		err := d.update(context.WithoutCancel(ctx), func(tx *transaction) error {
			return tx.Log(event(row, task.KindTaskProgress, progress(m)))
		})
		if err != nil {
			d.log(row).Warn().Err(err).Msg("progress of a run not noted")
			return
		}
		d.nudgeOf(row)
	}
}

// progress is what a report says: how much is done, in percent, and in words
// (CLOWL-24).
func progress(m envelope.Message) map[string]any {
	var said struct {
		Pct  jsontext.Value `json:"pct"`
		Note string         `json:"note"`
	}
	if m.Data != nil && json.Unmarshal(m.Data, &said) != nil {
		said.Note = "" // words of another shape: those for people do
	}
	data := map[string]any{}
	if said.Pct.Kind() == '0' {
		data["pct"] = said.Pct
	}
	if m.Text != "" {
		data["note"] = m.Text
	} else if said.Note != "" {
		data["note"] = said.Note
	}
	return data
}
