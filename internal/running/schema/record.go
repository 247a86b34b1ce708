package schema

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Record has the content that each schema file had when answers were first held against it: a
// ref never changes its meaning. A schema that no answer was held against may change. The record
// is a file of the state directory; its methods may be called concurrently.
type Record struct {
	path   string
	notice func(error) // a use that could not be recorded

	mu    sync.Mutex
	files map[string]recorded // by their refs
}

// A recorded is the content of a schema file.
type recorded struct {
	SHA256 string `json:"sha256"`
	Used   bool   `json:"used"` // an answer was held against it
}

// RecordName is the name of a record in the state directory.
const RecordName = "schemas.json"

// OpenRecord reads a record. One that is not there is empty. Notice gets what goes wrong later;
// nil ignores it.
func OpenRecord(path string, notice func(error)) (*Record, error) {
	r := &Record{path: path, notice: notice, files: map[string]recorded{}}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, nil
	case err != nil:
		return nil, fmt.Errorf("read record of schemas: %w", err)
	}
	if err := json.Unmarshal(text, &r.files); err != nil {
		return nil, fmt.Errorf("read record of schemas %s: %w; remove the file to begin a new record", path, err)
	}
	return r, nil
}

// Changed returns the refs of files whose content differs from that of their first use, sorted.
// Schemas that are built in belong to the program.
func (r *Record) Changed(s *Set) (refs []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ref := range s.Refs() {
		if was := r.files[ref]; !IsBuiltIn(ref) && was.Used && was.SHA256 != s.sumOf(ref) {
			refs = append(refs, ref)
		}
	}
	return refs
}

// Altered is the error about a schema that changed.
func Altered(ref string) error {
	return fmt.Errorf("%s: its content changed since answers were held against it; put the old content back, and the new one into a new file", file(ref))
}

// Follow records the files of a set, and from then on which of them are used. A file that was
// used with other content keeps its first record.
func (r *Record) Follow(s *Set) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.record = r
	changed := false
	for _, ref := range s.Refs() {
		was, sum := r.files[ref], s.sumOf(ref)
		if IsBuiltIn(ref) || was.Used || was.SHA256 == sum {
			continue
		}
		r.files[ref], changed = recorded{SHA256: sum}, true
	}
	if !changed {
		return nil
	}
	return r.write()
}

// use records that an answer was held against a schema.
func (r *Record) use(ref string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, ok := r.files[ref]
	if !ok || was.Used {
		return
	}
	was.Used = true
	r.files[ref] = was
	if err := r.write(); err != nil {
		was.Used = false
		r.files[ref] = was
		if r.notice != nil {
			r.notice(err)
		}
	}
}

// write replaces the file. It is on disk when the error is nil.
func (r *Record) write() (err error) {
	text, err := json.Marshal(r.files, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Dir(r.path))
	if err != nil {
		return fmt.Errorf("write record of schemas: %w", err)
	}
	defer root.Close()
	aside := "." + rand.Text()
	if err = writeSynced(root, aside, append(text, '\n')); err == nil {
		err = root.Rename(aside, filepath.Base(r.path))
	}
	if err == nil {
		err = syncDir(root)
	}
	if err != nil {
		_ = root.Remove(aside) // it may not be there
		return fmt.Errorf("write record of schemas: %w", err)
	}
	return nil
}

func writeSynced(root *os.Root, name string, text []byte) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Write(text); err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func syncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// sumOf returns the SHA-256 of a file, in hex.
func (s *Set) sumOf(ref string) string {
	sum := sha256.Sum256(s.texts[ref])
	return hex.EncodeToString(sum[:])
}
