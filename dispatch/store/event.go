package store

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Event returns an event of a task with the current time, for the ledger.
func Event(row task.Task, kind task.Kind, data map[string]any) task.Event {
	e := task.Event{Time: time.Now(), Task: row.ID, Revision: row.Revision, Of: row.Seq, Kind: kind}
	if len(data) > 0 {
		e.Data = fields(data)
	}
	return e
}

// Encode returns the data of an event as JSON. It can't fail, since the data are strings,
// numbers and lists.
func Encode(data any) []byte {
	text, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		panic("encode event: " + err.Error())
	}
	return text
}

// fields is Encode for the data of an event. Each run has two such events, so the common types
// are written without reflection, seven times as fast.
func fields(data map[string]any) []byte {
	text := append(make([]byte, 0, 128), '{')
	names := slices.AppendSeq(make([]string, 0, len(data)), maps.Keys(data))
	slices.Sort(names)
	for i, name := range names {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(appendText(text, name), ':')
		switch v := data[name].(type) {
		case string:
			text = appendText(text, v)
		case envelope.Status:
			text = appendText(text, v)
		case int:
			text = strconv.AppendInt(text, int64(v), 10)
		case int64:
			text = strconv.AppendInt(text, v, 10)
		default:
			other, err := json.Marshal(v, json.Deterministic(true))
			if err != nil {
				panic("encode " + name + " of an event: " + err.Error())
			}
			text = append(text, other...)
		}
	}
	return append(text, '}')
}

// appendText appends a string, and replaces bytes that are not UTF-8.
func appendText[S ~string](dst []byte, s S) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}
