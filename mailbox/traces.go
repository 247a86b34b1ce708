package mailbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"mailboxd/envelope"
)

// KeepersDir is the directory of the keepers in the state directory. A daemon creates it
// after its ledger is on disk.
const KeepersDir = "keepers"

// Traces lists the names in the state directory that an earlier daemon created after its
// ledger: run directories, replaced results, the directory of the keepers. There are none
// before the first start.
func (s *State) Traces() (names []string, err error) {
	for _, name := range []string{KeepersDir, runsName, historyName} {
		info, err := s.root.Lstat(name)
		there := err == nil && name == KeepersDir && info.IsDir()
		if err == nil && info.IsDir() && !there {
			for _, err = range entries(s.root, name) {
				there = err == nil
				break
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look for traces of an earlier daemon: %w", err)
		}
		if there {
			names = append(names, name)
		}
	}
	return names, nil
}

// An Attempt names the run directory of an attempt.
type Attempt struct{ Revision, Attempt int }

// Attempts lists the run directories of a task, in no order. It ignores other entries. If
// the parent isn't a directory or can't be entered, there are none: no run can be made
// there.
func (s *State) Attempts(id envelope.ID) (list []Attempt, err error) {
	dir := filepath.Join(s.path, runsName, id.Dir())
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() { // most tasks have none: one system call
		if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return nil, nil
		}
		return nil, fmt.Errorf("list runs of %s: %w", id, err)
	}
	found, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("list runs of %s: %w", id, err)
	}
	for _, entry := range found {
		revision, attempt, _ := strings.Cut(entry.Name(), ".")
		r, err1 := strconv.Atoi(revision)
		a, err2 := strconv.Atoi(attempt)
		if entry.IsDir() && err1 == nil && err2 == nil {
			list = append(list, Attempt{r, a})
		}
	}
	return list, nil
}
