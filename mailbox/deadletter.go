package mailbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// A DeadLetter is a line that could not become a task, and the reasons.
type DeadLetter struct {
	Time    time.Time     // of the refusal; zero: the time of recording
	File    string        // of the line, relative to the root
	Offset  int64         // in bytes
	Length  int64         // of the whole line in bytes; Raw may be shorter
	SHA256  string        // hex; "": of Raw
	TaskID  string        // if it was readable; not safe as a path
	Kind    envelope.Kind // of the first reason
	Reasons []Reason
	Raw     []byte // the line, or its beginning
}

// A Reason is one problem of a line.
type Reason struct {
	Field   string `json:"field"` // "" for the whole line
	Message string `json:"message"`
}

// deadLetterLine is the JSON form of a DeadLetter.
type deadLetterLine struct {
	Time    time.Time     `json:"time"`
	File    string        `json:"file"`
	Offset  int64         `json:"offset"`
	Length  int64         `json:"length"`
	SHA256  string        `json:"sha256"`
	TaskID  string        `json:"task_id,omitzero"`
	Kind    envelope.Kind `json:"kind"`
	Reasons []Reason      `json:"reasons"`
	Text    *string       `json:"raw,omitzero"`
	Base64  []byte        `json:"raw_base64,omitzero"`
}

// Line returns the JSON of a dead letter, without a newline. A Raw that isn't UTF-8 is in
// base64.
func (d DeadLetter) Line() []byte {
	line, err := json.Marshal(d.line(time.Now()), jsontext.AllowInvalidUTF8(true)) // names and ids may contain any bytes
	if err != nil {
		panic("encode dead letter: " + err.Error()) // strings, bytes and times never fail
	}
	return line
}

// AppendDeadLetters appends lines of dead letters to rejected/<yyyy-mm-dd>.jsonl, by the
// UTC day of now, in one write. They are on disk when it returns nil. An *UnfitError names
// an object in the place of the file or its directory.
func (b *Box) AppendDeadLetters(now time.Time, lines [][]byte) error {
	if len(lines) == 0 {
		return nil
	}
	path := rejectedName + "/" + now.UTC().Format(time.DateOnly) + taskSuffix
	if err := b.append(path, bytes.Join(lines, []byte("\n"))); err != nil {
		return fmt.Errorf("append dead letters to %s: %w", path, err)
	}
	return nil
}

func (d DeadLetter) line(now time.Time) deadLetterLine {
	l := deadLetterLine{
		Time: d.Time.UTC(), File: d.File, Offset: d.Offset, Length: d.Length,
		SHA256: d.SHA256, TaskID: d.TaskID, Kind: d.Kind, Reasons: d.Reasons,
	}
	if d.Time.IsZero() {
		l.Time = now.UTC()
	}
	if d.SHA256 == "" {
		sum := sha256.Sum256(d.Raw)
		l.SHA256 = hex.EncodeToString(sum[:])
	}
	if utf8.Valid(d.Raw) {
		text := string(d.Raw)
		l.Text = &text
	} else {
		l.Base64 = d.Raw
	}
	return l
}
