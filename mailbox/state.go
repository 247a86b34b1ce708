package mailbox

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/google/uuid"

	"mailboxd/envelope"
	"mailboxd/internal/stores/dirtree"
	"mailboxd/internal/testtools/fault"
)

const (
	ledgerName  = "ledger.db"
	runsName    = "runs"
	historyName = "history"
	idName      = "mailbox-id"
	keyName     = "approval-key"
)

// A State is the private half of a mailbox. Only the daemon may write it, so it is never
// inside the mailbox. Only OpenState makes one. All methods may be called concurrently.
type State struct {
	path string
	root *os.Root

	mu   sync.Mutex // guards lock
	lock *os.File   // the locked directory; nil: not claimed
}

// OpenState opens the state directory of the mailbox at root, and creates it with mode 0700
// if necessary. It refuses a directory that other users can read, that belongs to another
// user, or that is inside the mailbox; the error has a remedy.
func OpenState(dir, root string) (*State, error) {
	path, err := locate(dir)
	if err != nil {
		return nil, fmt.Errorf("open state %s: %w", dir, err)
	}
	box, err := Resolve(root)
	if err != nil {
		return nil, fmt.Errorf("open state %s: %w", dir, err)
	}
	if inside(path, box) {
		return nil, fmt.Errorf("open state: %s is inside the mailbox %s, whose writers could forge it: use a directory outside", path, box)
	}
	if err := private(path); err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	s := &State{path: path}
	if s.root, err = os.OpenRoot(path); err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	if err := checkMoved(s.root, path, "state_dir"); err != nil {
		return nil, errors.Join(fmt.Errorf("open state: %w", err), s.root.Close())
	}
	return s, nil
}

func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func private(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	switch {
	case owner != os.Geteuid():
		return &UnfitError{fmt.Sprintf("%s belongs to user %d, not to you", path, owner), "use another directory"}
	case info.Mode().Perm()&0o077 != 0:
		return &UnfitError{"others may look into " + path, "chmod 700 " + path}
	}
	return nil
}

// Path returns the absolute path of the state directory.
func (s *State) Path() string { return s.path }

// LedgerPath returns the absolute path of the ledger's file.
func (s *State) LedgerPath() string { return filepath.Join(s.path, ledgerName) }

// ID returns the id of the mailbox, which signatures of approvals name. The first call makes a
// random one. It is on disk when the error is nil.
func (s *State) ID() (string, error) { return s.word(idName, "id of the mailbox", uuid.NewString) }

// ApprovalKey returns the secret key of the digests of values that approvals cover. The first call
// makes a random one. It is on disk when the error is nil.
func (s *State) ApprovalKey() (string, error) {
	return s.word(keyName, "key of approvals", func() string { return rand.Text() + rand.Text() })
}

// word returns the one word of a file. If there is none, it makes the file with a new one.
func (s *State) word(name, what string, newWord func() string) (string, error) {
	text, err := s.root.ReadFile(name)
	if word := strings.TrimSpace(string(text)); err == nil && word != "" {
		return word, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	word := newWord()
	if err = s.putAside(".", name, []byte(word+"\n")); err == nil {
		err = s.sync(".")
	}
	if err != nil {
		return "", fmt.Errorf("make %s: %w", what, err)
	}
	return word, nil
}

// Close closes the directory and releases its claim.
func (s *State) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.root.Close()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
		s.lock = nil
	}
	return err
}

// RunDir returns the absolute path of the run directory of an attempt.
func (s *State) RunDir(id envelope.ID, rev, attempt int) string {
	return filepath.Join(s.path, runDir(id, rev, attempt))
}

func runDir(id envelope.ID, rev, attempt int) string {
	return filepath.Join(runsName, id.Dir(), fmt.Sprintf("%d.%d", rev, attempt))
}

// MakeRunDir creates the RunDir with mode 0700 and returns it. If it exists, the error
// wraps fs.ErrExist: a run never overwrites another. An *UnfitError names an object in the
// place of the parent directory.
func (s *State) MakeRunDir(id envelope.ID, rev, attempt int) (string, error) {
	dir := runDir(id, rev, attempt)
	path := filepath.Join(s.path, dir)
	err := s.root.Mkdir(filepath.Dir(dir), 0o700) // the first attempt, as for most tasks
	if errors.Is(err, fs.ErrNotExist) {
		err = s.root.MkdirAll(filepath.Dir(dir), 0o700)
	}
	switch {
	case err == nil: // inside the root, so the path leads nowhere else
		err = os.Mkdir(path, 0o700)
	case errors.Is(err, fs.ErrExist):
		if err = s.root.Mkdir(dir, 0o700); obstructs(err) {
			return "", &UnfitError{fmt.Sprintf("%s is no directory that can be used: %v", filepath.Dir(path), err), "move it away, then: mailboxd release " + string(id)}
		}
	}
	if err != nil {
		return "", fmt.Errorf("make run directory %s: %w", dir, err)
	}
	return path, nil
}

// obstructs reports whether an error of mkdir says that the parent is another object, leads
// elsewhere or can't be entered. For a symlink out of a root, the error has no errno.
func obstructs(err error) bool {
	errno, numbered := errors.AsType[syscall.Errno](err)
	switch {
	case err == nil || errors.Is(err, fs.ErrExist):
		return false
	case !numbered:
		return true
	}
	return errno == syscall.ENOTDIR || errno == syscall.ENOENT || errno == syscall.ELOOP || errno == syscall.EACCES || errno == syscall.EPERM
}

// RemoveRunDir removes the RunDir with its content; a missing one is no error.
func (s *State) RemoveRunDir(id envelope.ID, rev, attempt int) error {
	dir := runDir(id, rev, attempt)
	if err := dirtree.RemoveIn(s.root, dir); err != nil {
		return fmt.Errorf("remove run directory %s: %w", dir, err)
	}
	return nil
}

// PutHistory stores the result of a revision, which is on disk when it returns nil. It
// stores equal bytes once; other bytes get another name beside them, such as <rev>.2.json.
func (s *State) PutHistory(id envelope.ID, rev int, data []byte) error {
	_, err := s.putHistory(id, strconv.Itoa(rev), data)
	return err
}

// PutRefused stores a result file that was refused while a revision was the latest, as
// <rev>.refused.json, so no reader takes it for the revision's result. It is on disk when
// it returns nil. It returns the path relative to the state directory. It stores equal
// bytes once, and other bytes beside them.
func (s *State) PutRefused(id envelope.ID, rev int, data []byte) (path string, err error) {
	return s.putHistory(id, strconv.Itoa(rev)+".refused", data)
}

// putHistory stores data as <base>.json, or beside that, and returns its path.
func (s *State) putHistory(id envelope.ID, base string, data []byte) (path string, err error) {
	dir := filepath.Join(historyName, id.Dir())
	if err := s.root.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("put history %s: %w", id, err)
	}
	name, there, err := s.freeName(dir, base, data)
	if err == nil && !there {
		err = s.putAside(dir, name, data)
	}
	fault.Point("history-named")
	if err == nil { // also if it exists: it may not be on disk yet
		err = s.sync(dir, historyName, ".")
	}
	if err != nil {
		return "", fmt.Errorf("put history %s: %w", id, err)
	}
	return filepath.Join(dir, name), nil
}

// freeName returns a name for the data, and whether the data is stored already.
func (s *State) freeName(dir, base string, data []byte) (name string, there bool, err error) {
	name = base + resultSuffix
	for n := 2; ; n++ {
		old, err := s.root.ReadFile(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return name, false, nil
		case err != nil:
			return "", false, err
		case bytes.Equal(old, data):
			return name, true, nil
		}
		name = fmt.Sprintf("%s.%d%s", base, n, resultSuffix)
	}
}

func historyFile(rev int) string { return strconv.Itoa(rev) + resultSuffix }

// putAside writes to another name first, so that the name never has a partial file.
func (s *State) putAside(dir, name string, data []byte) (err error) {
	aside := filepath.Join(dir, "."+rand.Text())
	file, err := s.root.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		fault.Synced("history-synced", file)
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = s.root.Rename(aside, filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, s.root.Remove(aside))
	}
	return nil
}

func (s *State) sync(names ...string) error {
	for _, name := range names {
		dir, err := s.root.Open(name)
		if err != nil {
			return err
		}
		err = dir.Sync()
		if err == nil {
			fault.Synced("state-named", dir)
		}
		if err = errors.Join(err, dir.Close()); err != nil {
			return err
		}
	}
	return nil
}

// HistoryPath returns the absolute path for PutHistory of a revision.
func (s *State) HistoryPath(id envelope.ID, rev int) string {
	return filepath.Join(s.path, historyName, id.Dir(), historyFile(rev))
}

// History returns the stored result of a revision. The error wraps fs.ErrNotExist if there
// is none.
func (s *State) History(id envelope.ID, rev int) ([]byte, error) {
	data, err := s.root.ReadFile(filepath.Join(historyName, id.Dir(), historyFile(rev)))
	if err != nil {
		return nil, fmt.Errorf("read history %s: %w", id, err)
	}
	return data, nil
}
