// Package artifact keeps files under the SHA-256 of their bytes. A file has its final name only
// when it is whole and on disk, and its bytes are compared with the name whenever they are read.
package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
)

// Limits of artifacts, in bytes.
const (
	MaxFile = 256 << 20 // a file
	MaxRun  = 1 << 30   // the files that a run publishes, or gets
)

// MaxFiles is how many artifacts a run publishes at most.
const MaxFiles = 1000

// Names in the state directory.
const (
	dirName  = "artifacts"
	kindName = "sha256"
	putName  = "put"  // what is known of artifacts that a person put
	asideTo  = "tmp-" // begins the name of a file that is being written
)

// ErrChanged says that the bytes of an artifact are not those that its name says.
var ErrChanged = errors.New("is not what its name says: it was changed on disk")

// A LimitError says which limit has no room for a file.
type LimitError struct {
	What string // the file, or the sum of some files
	Most int64
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s would have more than %d bytes", e.What, e.Most)
}

// A Store has the artifacts of a mailbox. Several processes may use one. Its methods may be
// called concurrently.
type Store struct {
	dir  string
	file int64 // the most bytes of a file
	most int64 // of all files; 0: no limit

	mu      sync.Mutex // guards what follows
	used    int64      // of all files, when they were counted
	counted time.Time
}

// In returns the store in a state directory, which has at most this many bytes; 0 is no limit.
func In(state string, most int64) *Store {
	return &Store{dir: filepath.Join(state, dirName), file: MaxFile, most: most}
}

// path returns the path of an artifact.
func (s *Store) path(digest string) string { return filepath.Join(s.dir, kindName, digest[:2], digest) }

// An Entry is an artifact on disk.
type Entry struct {
	Digest  string
	Size    int64
	Changed time.Time // when it was published or put last
}

// Stat returns an artifact without reading it. The error wraps fs.ErrNotExist if there is none,
// and ErrChanged if something else has its name.
func (s *Store) Stat(digest string) (Entry, error) {
	if !envelope.IsDigest(digest) {
		return Entry{}, fmt.Errorf("artifact %.80q: %w: it is no SHA-256 in 64 lower-case hexadecimal digits", digest, fs.ErrNotExist)
	}
	info, err := os.Lstat(s.path(digest))
	if errors.Is(err, fs.ErrNotExist) {
		err = fs.ErrNotExist // without a path, which requesters needn't know
	}
	if err == nil && !info.Mode().IsRegular() {
		err = ErrChanged
	}
	if err != nil {
		return Entry{}, fmt.Errorf("artifact %s: %w", digest, err)
	}
	return Entry{Digest: digest, Size: info.Size(), Changed: info.ModTime()}, nil
}

// All returns all artifacts, in the order of their digests. An error is about one name, and the
// rest follows.
func (s *Store) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		groups, err := os.ReadDir(filepath.Join(s.dir, kindName))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(Entry{}, fmt.Errorf("list artifacts: %w", err))
			return
		}
		for _, group := range groups {
			files, err := os.ReadDir(filepath.Join(s.dir, kindName, group.Name()))
			if err != nil && !yield(Entry{}, fmt.Errorf("list artifacts: %w", err)) {
				return
			}
			for _, file := range files {
				e, err := s.Stat(file.Name())
				if err == nil && !strings.HasPrefix(e.Digest, group.Name()) {
					err = fmt.Errorf("artifact %s: is in the directory %.80q", e.Digest, group.Name())
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// recount is how long the sum of all sizes counts, since other processes put artifacts, too.
const recount = time.Minute

// reserve adds a size to the sum of all artifacts, unless that is over its limit then.
func (s *Store) reserve(size int64) error {
	if time.Since(s.counted) > recount {
		s.used, s.counted = 0, time.Now()
		for e := range s.All() {
			s.used += e.Size
		}
	}
	if s.most > 0 && s.used+size > s.most {
		return &LimitError{What: "all artifacts (artifacts.max_bytes)", Most: s.most}
	}
	s.used += size
	return nil
}

// lock has no other process name or remove an artifact until the returned function is called.
func (s *Store) lock() (unlock func(), err error) {
	s.mu.Lock()
	dir, err := os.Open(s.dir)
	if err == nil {
		if err = unix.Flock(int(dir.Fd()), unix.LOCK_EX); err == nil {
			return func() { dir.Close(); s.mu.Unlock() }, nil
		}
		dir.Close() // nothing was written
	}
	s.mu.Unlock()
	return nil, err
}

// Remove removes an artifact that was published or put last before a time, and reports whether it
// did. With dry, it only says what it would do.
func (s *Store) Remove(digest string, before time.Time, dry bool) (bool, error) {
	unlock, err := s.lock()
	if err != nil {
		return false, fmt.Errorf("remove artifact %s: %w", digest, err)
	}
	defer unlock()
	e, err := s.Stat(digest)
	if err != nil || !e.Changed.Before(before) || dry {
		return err == nil && e.Changed.Before(before), err
	}
	if err = os.Remove(s.path(digest)); err == nil {
		s.used -= e.Size
		err = s.forget(digest)
	}
	if err != nil {
		return false, fmt.Errorf("remove artifact %s: %w", digest, err)
	}
	return true, nil
}

// Sweep removes what writers that were killed before a time left.
func (s *Store) Sweep(before time.Time) error {
	files, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sweep artifacts: %w", err)
	}
	for _, file := range files {
		info, err := file.Info()
		if err != nil || !strings.HasPrefix(file.Name(), asideTo) || !info.ModTime().Before(before) {
			continue // gone meanwhile, or in use
		}
		if err := os.Remove(filepath.Join(s.dir, file.Name())); err != nil {
			return fmt.Errorf("sweep artifacts: %w", err)
		}
	}
	return nil
}
