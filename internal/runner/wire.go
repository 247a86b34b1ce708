package runner

import (
	"encoding/json"
	"errors"
	"syscall"

	"mailboxd/internal/task"
)

// protocol is the version of what a keeper and its clients say to each other. A
// client starts runs only with a keeper of its own build, and awaits them with
// any: so every later version has to understand a version 1 Await and Stop, and
// answer them with the reports of version 1. Whatever else it may add is ignored
// by those who do not know it.
const protocol = 1

// A hello is the first thing a keeper says to whoever connects.
type hello struct {
	Protocol int    `json:"protocol"`
	Build    string `json:"build"`
	PID      int    `json:"pid"`
}

// A demand is what a client says. Exactly one member is set.
type demand struct {
	Start int     `json:"start,omitempty"` // start a run and tell of it: an order of so many bytes follows the line
	Await exact   `json:"await,omitempty"` // tell of the run in this directory
	Stop  *string `json:"stop,omitempty"`  // end the run last asked for, for this reason
	Leave bool    `json:"leave,omitempty"` // leave, if nobody else needs you

	order []byte // with Start
}

// A report is what a keeper says. Exactly one member is set, but for what is
// beside Exit; and of a run that a client has started and that is over at once,
// Started and Exit are said together.
type report struct {
	Started *Process   `json:"started,omitempty"`
	Refused *refusal   `json:"refused,omitempty"` // nothing was started
	Exit    *task.Exit `json:"exit,omitempty"`
	Error   string     `json:"error,omitempty"`   // a record of the run could not be written
	Unknown bool       `json:"unknown,omitempty"` // there is no such run; or the keeper does not leave

	Unwritten bool `json:"unwritten,omitempty"` // beside Exit: nothing says so but the keeper, until a Start names the run as known
}

// A refusal is a SpawnError on its way.
type refusal struct {
	Command exact         `json:"command"`
	Text    string        `json:"text"`
	Number  syscall.Errno `json:"errno,omitempty"`
}

func refuse(e *SpawnError) *refusal {
	r := &refusal{Command: exact(e.Command), Text: e.Err.Error()}
	r.Number, _ = errors.AsType[syscall.Errno](e.Err)
	return r
}

func (r *refusal) spawnError() *SpawnError {
	err := errors.New(r.Text)
	if r.Number != 0 {
		err = &distant{r.Text, r.Number}
	}
	return &SpawnError{Command: string(r.Command), Err: err}
}

// A distant error happened in another process.
type distant struct {
	text  string
	cause syscall.Errno
}

func (e *distant) Error() string { return e.text }

// Unwrap returns the cause, so that errors.Is knows it here as it did there.
func (e *distant) Unwrap() error { return e.cause }

// exact is text of which each byte counts, valid UTF-8 or not: a JSON string
// would change the bytes that are not.
type exact string

// MarshalJSON writes the bytes in base64.
func (e exact) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(e)) }

// UnmarshalJSON reads what MarshalJSON writes.
func (e *exact) UnmarshalJSON(text []byte) error {
	var b []byte
	err := json.Unmarshal(text, &b)
	*e = exact(b)
	return err
}
