package artifact

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mailboxd/internal/testtools/fault"
)

// Put keeps what a reader has, at most some bytes of it, and returns its digest. What is kept
// already counts as put again. After an error, nothing has a final name.
func (s *Store) Put(from io.Reader, most int64) (Entry, error) {
	return s.put(from, most, func(int64) error { return nil })
}

// put is Put, with a last check after the copy of so many bytes.
func (s *Store) put(from io.Reader, most int64, check func(copied int64) error) (e Entry, err error) {
	if err := s.makeDirs(); err != nil {
		return e, err
	}
	aside := filepath.Join(s.dir, asideTo+rand.Text())
	file, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return e, err
	}
	defer func() {
		file.Close() // written and synced, or useless
		if gone := os.Remove(aside); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	limit := LimitError{What: "a file", Most: s.file}
	if most < limit.Most {
		limit = LimitError{What: "the artifacts of the run", Most: most}
	}
	if e, err = copyLimited(file, from, limit); err == nil {
		err = check(e.Size)
	}
	if err != nil {
		return e, err
	}
	if err := file.Sync(); err != nil {
		return e, err
	}
	fault.Synced("artifact-synced", file)
	return e, s.name(e, aside)
}

// copyLimited copies, and hashes what it copies. The size is checked meanwhile.
func copyLimited(to io.Writer, from io.Reader, limit LimitError) (e Entry, err error) {
	hash := sha256.New()
	e.Size, err = io.Copy(io.MultiWriter(to, hash), io.LimitReader(from, limit.Most+1))
	if err == nil {
		err = fault.Read("write artifact")
	}
	if err == nil && e.Size > limit.Most {
		err = &limit
	}
	e.Digest, e.Changed = hex.EncodeToString(hash.Sum(nil)), time.Now()
	return e, err
}

// name gives the file aside its final name, unless that has the same bytes already.
func (s *Store) name(e Entry, aside string) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	path := s.path(e.Digest)
	if _, err := s.read(e.Digest, io.Discard, s.file); err == nil {
		if err := os.Chtimes(path, e.Changed, e.Changed); err != nil {
			return err
		}
		return s.syncDirs(filepath.Dir(path))
	}
	if err := s.reserve(e.Size); err != nil {
		return err
	}
	if err = s.makeDirs(filepath.Dir(path)); err == nil {
		err = os.Link(aside, path)
	}
	if errors.Is(err, fs.ErrExist) {
		err = os.Rename(aside, path) // what was there was changed
	}
	if err != nil {
		s.used -= e.Size
		return err
	}
	return s.syncDirs(filepath.Dir(path))
}

// makeDirs makes the directories of an artifact, or of the store without one. A directory stays
// when its names were synced, which name does.
func (s *Store) makeDirs(more ...string) error {
	for _, dir := range append([]string{s.dir, filepath.Join(s.dir, kindName)}, more...) {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// syncDirs syncs the names from a directory of the store up to the state directory, since a
// writer that was killed may have synced none of them.
func (s *Store) syncDirs(path string) error {
	for ; len(path) >= len(filepath.Dir(s.dir)); path = filepath.Dir(path) {
		dir, err := os.Open(path)
		if err != nil {
			return err
		}
		err = dir.Sync()
		fault.Synced("artifact-named", dir)
		dir.Close() // nothing was written
		if err != nil {
			return err
		}
	}
	return nil
}
