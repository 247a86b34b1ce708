package external

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/stores/dirtree"
)

// RecordFile is the file of a run directory that has what was sent to a service.
const RecordFile = "external.json"

// A Record says what was sent to a service. It is durable before anything is sent, so that without
// a record nothing was sent.
type Record struct {
	To       string    `json:"to"`                 // the address, or the server and its tool
	Key      string    `json:"key"`                // the idempotency key: the id of the run that sent first
	Sent     time.Time `json:"sent"`               // when sending began
	Location string    `json:"location,omitempty"` // where the service has its answer; "": unknown
	Answered bool      `json:"answered,omitzero"`  // the run printed the answer: another run sends anew

	Dialogue
}

// A Dialogue is what was said with an agent of A2A. Its messages have the Key of the record as their id.
type Dialogue struct {
	Task     string `json:"task,omitempty"`     // the id that the agent gave the task; "": it gave none
	Context  string `json:"context,omitempty"`  // likewise
	Question string `json:"question,omitempty"` // the id of its last question to a person
	Asked    bool   `json:"asked,omitzero"`     // no reply to it was sent
	Said     int    `json:"said,omitzero"`      // replies that were sent
	Received int    `json:"received,omitzero"`  // those of them that the agent is known to have
}

// Placed says where the answer is to a request that a service has; "" if nothing says that it has it.
func (r Record) Placed() string {
	if r.Task != "" {
		return "the task " + r.Task + " of " + r.To
	}
	return r.Location
}

// ReadRecord returns the record of a run directory, and whether there is one.
func ReadRecord(dir string) (r Record, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(dir, RecordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, false, fmt.Errorf("read %s: %w", RecordFile, err)
	}
	return r, true, nil
}

// Carry copies the record of an earlier run into the directory of the next one, if its service has
// not answered yet.
func Carry(from, to string) error {
	r, ok, err := ReadRecord(from)
	if err != nil || !ok || r.Answered {
		return err
	}
	return r.write(to)
}

// write puts the record in place of the earlier one. It is durable then, with the directory itself
// and the two above it, which are as new.
func (r Record) write(dir string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	err = dirtree.WriteFile(filepath.Join(dir, RecordFile), append(text, '\n'))
	for range 2 {
		dir = filepath.Dir(dir)
		err = errors.Join(err, dirtree.SyncDir(dir))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", RecordFile, err)
	}
	return nil
}
