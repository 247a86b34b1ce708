package artifact

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/stores/ledger"
)

// A Note is what a person said of an artifact. What tasks published is in the ledger.
type Note struct {
	Sensitivity string    `json:"sensitivity"`
	Name        string    `json:"name"` // of the file that was put
	Time        time.Time `json:"time"`
}

func (s *Store) notePath(digest string) string { return filepath.Join(s.dir, putName, digest) }

// SetNote keeps a note about an artifact, in the place of an earlier one.
func (s *Store) SetNote(digest string, n Note) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("note artifact %s: %w", digest, err)
		}
	}()
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := s.makeDirs(filepath.Dir(s.notePath(digest))); err != nil {
		return err
	}
	aside := filepath.Join(s.dir, asideTo+rand.Text())
	file, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Write(append(text, '\n')); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(aside, s.notePath(digest))
	}
	if err != nil {
		return errors.Join(err, os.Remove(aside))
	}
	return s.syncDirs(filepath.Dir(s.notePath(digest)))
}

// Note returns the note about an artifact, and whether there is one. One that can't be read is
// taken for that of a restricted artifact.
func (s *Store) Note(digest string) (n Note, found bool) {
	text, err := os.ReadFile(s.notePath(digest))
	if isMissing(err) {
		return n, false
	}
	if err != nil || json.Unmarshal(text, &n) != nil {
		return Note{Sensitivity: envelope.Restricted.String()}, true
	}
	return n, true
}

// Sensitivity returns the highest sensitivity of the tasks that published an artifact and of the
// person who put it, and whether there is any.
func (s *Store) Sensitivity(digest string, tasks []ledger.Artifact) (highest envelope.Sensitivity, known bool) {
	if note, noted := s.Note(digest); noted {
		known = true
		highest, _ = envelope.ParseSensitivity(note.Sensitivity)
	}
	for _, t := range tasks {
		if t.Published {
			highest, known = max(highest, t.Sensitivity), true
		}
	}
	return highest, known
}

// forget removes the note about an artifact.
func (s *Store) forget(digest string) error {
	if err := os.Remove(s.notePath(digest)); err != nil && !isMissing(err) {
		return err
	}
	return nil
}
