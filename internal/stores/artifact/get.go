package artifact

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"mailboxd/internal/stores/dirtree"
)

// Verify reads an artifact. The error wraps ErrChanged if its bytes are not those that its name
// says, and fs.ErrNotExist if there is none.
func (s *Store) Verify(digest string) (Entry, error) { return s.read(digest, io.Discard, s.file) }

// Write writes an artifact, which it has verified before.
func (s *Store) Write(digest string, to io.Writer) error {
	_, err := s.Verify(digest)
	if err == nil {
		_, err = s.read(digest, to, s.file)
	}
	return err
}

// CopyTo makes a copy at a path where there is nothing, and compares what it copied with the
// digest. After an error there is no copy. A copy with more than some bytes is a LimitError.
func (s *Store) CopyTo(digest, path string, most int64) (e Entry, err error) {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return e, fmt.Errorf("copy artifact %s: %w", digest, err)
	}
	e, err = s.read(digest, to, most)
	if err = errors.Join(err, to.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return e, err
}

// Export copies an artifact to a path where there is nothing. The file has that name only when it
// is whole.
func (s *Store) Export(digest, path string) (err error) {
	aside := filepath.Join(filepath.Dir(path), ".mailboxd-"+rand.Text())
	if _, err := s.CopyTo(digest, aside, s.file); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(aside)) }()
	if err := os.Chmod(aside, 0o600); err != nil {
		return err
	}
	return os.Link(aside, path)
}

// read copies an artifact, and compares what it copied with the digest.
func (s *Store) read(digest string, to io.Writer, most int64) (Entry, error) {
	e, err := s.Stat(digest)
	if err != nil {
		return e, err
	}
	file, err := dirtree.OpenRegular(s.path(digest))
	if errors.Is(err, dirtree.ErrNotRegular) {
		err = ErrChanged
	}
	if err != nil {
		return e, fmt.Errorf("artifact %s: %w", digest, err)
	}
	defer file.Close() // nothing was written
	limit := LimitError{What: "the artifacts of the run", Most: most}
	read, err := copyLimited(to, file, limit)
	if err == nil && read.Digest != digest || e.Size > s.file {
		err = ErrChanged
	}
	if err != nil {
		return e, fmt.Errorf("artifact %s: %w", digest, err)
	}
	e.Size = read.Size
	return e, nil
}

// isMissing reports whether an error says that there is no file.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
