// Package bundle writes the evidence of a run into one file, and verifies such files, which may be hostile. A bundle
// is a tar with a signed manifest; verifying it needs public keys alone.
package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// The names of files in a bundle.
const (
	manifestName  = "manifest.json"
	statementName = "statement.dsse.json"
	approvalsName = "approvals.jsonl"
	eventsName    = "events.jsonl"
	messagesName  = "messages.jsonl"
	sealsName     = "seals.jsonl"
	keysName      = "keys.jsonl"
)

// format is the number of the format of bundles that this version writes and verifies.
const format = 1

// Limits of the bytes of files that are read as a whole.
const (
	maxManifest  = 8 << 20
	maxStatement = 64 << 10
	maxRedacted  = 1 << 10
	maxKeys      = 1 << 20
)

// What Export can replace by hashes.
const (
	Input  = "input"  // requests, plans, and messages to agents
	Output = "output" // results, patches, and messages of agents
)

// A Manifest lists the files and the tasks of a bundle.
type Manifest struct {
	Format   int          `json:"format"`
	Run      string       `json:"run"`
	Mailbox  string       `json:"mailbox"` // its id, which signatures of approvals name
	Time     time.Time    `json:"time"`    // of the latest event
	Redacted list[string] `json:"redacted,omitempty"`
	Tasks    list[Task]   `json:"tasks"`
	Files    list[File]   `json:"files"`
}

// A list is a list that is read up to maxEntries: three bytes of JSON can be an element of a hundred bytes.
type list[T any] []T

// UnmarshalJSONFrom reads a list.
func (l *list[T]) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	if begin, err := in.ReadToken(); err != nil || begin.Kind() != '[' {
		return cmp.Or(err, errors.New("want a list"))
	}
	for in.PeekKind() != ']' {
		var next T
		if len(*l) == maxEntries {
			return fmt.Errorf("a list has more than %d elements", maxEntries)
		}
		if err := json.UnmarshalDecode(in, &next, json.RejectUnknownMembers(true)); err != nil {
			return err
		}
		*l = append(*l, next)
	}
	_, err := in.ReadToken()
	return err
}

// A Task is one revision of a task of the run. The first one is number 1 in the names of files.
type Task struct {
	ID        envelope.ID     `json:"task_id"`
	Revision  int             `json:"revision"`
	Agent     string          `json:"agent"`
	Requester string          `json:"requester"`
	State     task.State      `json:"state"`
	Status    envelope.Status `json:"status,omitempty"`
}

// String names the revision for people.
func (t Task) String() string { return fmt.Sprintf("%s r%d", t.ID, t.Revision) }

// A File is one file of a bundle, besides the manifest and the statement about it.
type File struct {
	Name   string    `json:"name"`
	Size   int64     `json:"size"`
	SHA256 string    `json:"sha256"`
	Time   time.Time `json:"time"`
}

// A redacted file has what is left of a body.
type redacted struct {
	SHA256 string `json:"sha256"`
	Size   int    `json:"size"`
}

func fileOf(e entry) File {
	return File{e.name, e.size, e.digest(), time.Unix(e.time, 0).UTC()}
}

// isListed reports whether an entry is one that the manifest lists.
func isListed(e entry) bool { return e.name != manifestName && e.name != statementName }

// parseManifest reads a manifest, and checks what other parts rely on.
func parseManifest(text []byte) (m Manifest, err error) {
	if err := json.Unmarshal(text, &m, json.RejectUnknownMembers(true)); err != nil {
		return m, fmt.Errorf("read manifest: %w", err)
	}
	if m.Format != format {
		return m, fmt.Errorf("its format is %d; this version of mailboxd knows %d", m.Format, format)
	}
	for i, t := range m.Tasks {
		if _, err := envelope.ParseID(string(t.ID)); err != nil || t.Revision < 1 {
			return m, fmt.Errorf("read manifest: task %d: no id or no revision", i+1)
		}
	}
	return m, nil
}

// differsFrom says in which file a manifest differs from the entries of its bundle; nil for none.
func (m Manifest) differsFrom(entries []entry) error {
	listed := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return !isListed(e) })
	for i, e := range listed {
		switch {
		case i >= len(m.Files) || m.Files[i].Name > e.name:
			return fmt.Errorf("%s is not in the manifest", e.name)
		case m.Files[i].Name < e.name:
			return fmt.Errorf("%.200q is missing", m.Files[i].Name)
		case m.Files[i] != fileOf(e):
			return fmt.Errorf("%s is not the file that the manifest has", e.name)
		}
	}
	if len(m.Files) > len(listed) {
		return fmt.Errorf("%.200q is missing", m.Files[len(listed)].Name)
	}
	for _, e := range entries {
		if !isListed(e) && e.time != m.Time.Unix() {
			return fmt.Errorf("%s has another time than the manifest says", e.name)
		}
	}
	return nil
}

// checkRedacted returns an error unless a list is one of Input and Output.
func checkRedacted(what []string) error {
	for _, word := range what {
		if word != Input && word != Output {
			return errors.New("redact: want " + strings.Join([]string{Input, Output}, " or ") + ", with a comma between")
		}
	}
	return nil
}
