package mailbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mailboxd/internal/testtools/fault"
)

// rootName is the file in a state directory with the path of its mailbox.
const rootName = "root"

// Claim makes this process the only user of the state directory until Close or its end. It
// binds the directory to the mailbox at root: data about the runs of one mailbox must never
// be used for another. If another process uses the directory, the error is a *LockedError,
// after the same wait for a dead process as in Box.Lock.
func (s *State) Claim(root string) error {
	root, err := Resolve(root)
	if err != nil {
		return fmt.Errorf("claim state directory %s: %w", s.path, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lock := s.lock
	if lock == nil {
		if lock, err = flock(s.root, s.path); err != nil {
			return fmt.Errorf("claim state directory: %w", err)
		}
	}
	if err := s.tie(root); err != nil {
		if s.lock == nil {
			err = errors.Join(err, lock.Close())
		}
		return err
	}
	s.lock = lock
	return nil
}

// tie records the mailbox of the state, or compares it. A record without a newline is
// incomplete.
func (s *State) tie(root string) error {
	text, err := s.root.ReadFile(rootName)
	owner, whole := strings.CutSuffix(string(text), "\n")
	switch {
	case err == nil && whole && owner == root:
		return nil
	case err == nil && whole:
		return fmt.Errorf("state directory %s belongs to mailbox %s: use another state_dir for %s, or remove %s if that mailbox was moved here",
			s.path, owner, root, filepath.Join(s.path, rootName))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("claim state directory %s: %w", s.path, err)
	}
	if err := s.write(rootName, root+"\n"); err != nil {
		return fmt.Errorf("claim state directory %s: %w", s.path, err)
	}
	return nil
}

// write writes text to a file, which is on disk when it returns nil.
func (s *State) write(name, text string) error {
	file, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		fault.Synced("claim-synced", file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return s.sync(".")
}
