package runner

import (
	"encoding/json"
	"errors"
	"syscall"

	"mailboxd/internal/decisions/task"
)

// protocol is the version of the protocol between keepers and clients. A client starts runs
// only with a keeper of its own build, but awaits runs of any build. So every later version
// must support the version 1 requests Await and Stop, and answer with version 1 responses.
// Unknown members are ignored.
const protocol = 1

// A hello is the first message of a keeper.
type hello struct {
	Protocol int    `json:"protocol"`
	Build    string `json:"build"`
	PID      int    `json:"pid"`
}

// A request is a message of a client. Exactly one member is set.
type request struct {
	Start int     `json:"start,omitempty"` // start a run and report it; an encoded Spec of this many bytes follows
	Await rawText `json:"await,omitempty"` // response the run in this directory
	Stop  *string `json:"stop,omitempty"`  // endProcesses the last requested run, for this reason
	Leave bool    `json:"leave,omitempty"` // exit, if there is no other work

	spec []byte // with Start
}

// A response is a message of a keeper. Exactly one member is set, except for those beside
// Exit. For a short run, Started and Exit come together.
type response struct {
	Started *Process   `json:"started,omitempty"`
	Refused *refusal   `json:"refused,omitempty"` // nothing was started
	Exit    *task.Exit `json:"exit,omitempty"`
	Error   string     `json:"error,omitempty"`   // a record of the run couldn't be written
	Unknown bool       `json:"unknown,omitempty"` // there is no such run; or the keeper doesn't exit

	Unwritten bool `json:"unwritten,omitempty"` // beside Exit: only the keeper has the end, until a Start says that it is stored
}

// A refusal is an encoded SpawnError.
type refusal struct {
	Command rawText       `json:"command"`
	Text    string        `json:"text"`
	Number  syscall.Errno `json:"errno,omitempty"`
	Setup   bool          `json:"setup,omitempty"`
}

func refuse(e *SpawnError) *refusal {
	r := &refusal{Command: rawText(e.Command), Text: e.Err.Error(), Setup: e.Setup}
	r.Number, _ = errors.AsType[syscall.Errno](e.Err)
	return r
}

func (r *refusal) spawnError() *SpawnError {
	err := errors.New(r.Text)
	if r.Number != 0 {
		err = &remoteError{r.Text, r.Number}
	}
	return &SpawnError{Command: string(r.Command), Err: err, Setup: r.Setup}
}

// A remoteError is an error of another process.
type remoteError struct {
	text  string
	cause syscall.Errno
}

func (e *remoteError) Error() string { return e.text }

// Unwrap returns the cause for errors.Is.
func (e *remoteError) Unwrap() error { return e.cause }

// rawText is text with arbitrary bytes; a JSON string would change invalid UTF-8.
type rawText string

// MarshalJSON encodes the bytes in base64.
func (e rawText) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(e)) }

// UnmarshalJSON decodes the form of MarshalJSON.
func (e *rawText) UnmarshalJSON(text []byte) error {
	var b []byte
	err := json.Unmarshal(text, &b)
	*e = rawText(b)
	return err
}
