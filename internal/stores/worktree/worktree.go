// Package worktree makes a clone of a repository for each run, and turns the work of the
// agent there into a patch.
//
// An agent can write every file of its clone, .git/config and .git/hooks included, and such
// files can name programs: hooks, core.fsmonitor, filters, textconv, external diffs, includes.
// Switching them off one by one by options leaves those that nobody thought of: a filter has
// any name that .gitattributes gives it, and git looks into nested repositories by itself. So
// git never reads the .git directory of a clone. Each operation makes a git directory of its
// own outside the clone, with the objects of the source repository as alternates, an index of
// its own and no configuration, and uses the files of the clone as its working tree. The files
// at the end count; what the agent committed in its clone changes nothing.
//
// In the source repository only rev-parse and update-ref run, which start no program except
// the hook reference-transaction; hooks are off. Configuration of the system and of the user,
// prompts, pagers, editors and every protocol are off everywhere.
package worktree

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/stores/dirtree"
)

// A Store makes clones in one directory, and keeps a record of each in another one, which
// agents don't write. The zero value makes nothing.
type Store struct {
	Dir     string // of the clones
	Records string // private: <run id>.json, and git directories of our own

	Received string // private: repositories of commits that other machines sent; "": none
}

// A Clone is the clone that one run works in.
type Clone struct {
	Run         string            `json:"run"`
	Task        string            `json:"task"`
	Revision    int               `json:"revision"`
	Attempt     int               `json:"attempt"`
	Dir         string            `json:"dir"`     // the clone
	Source      string            `json:"source"`  // the working tree of the source repository
	Prefix      string            `json:"prefix"`  // of the run's directory below either; "" or with a final slash
	Objects     string            `json:"objects"` // of the source repository, which the clone reads
	Commit      string            `json:"commit"`  // the work starts from this one
	Branch      string            `json:"branch"`
	Created     time.Time         `json:"created"`
	Uncommitted []string          `json:"uncommitted,omitempty"`  // files of the source that the clone doesn't have
	Omitted     int               `json:"omitted,omitempty"`      // further ones, beyond maxListed
	Before      map[string]string `json:"source_state,omitempty"` // of the source, when the clone was made
	Submodules  []string          `json:"submodules,omitempty"`   // which the clone has as empty directories
	Copied      []string          `json:"copied,omitempty"`       // files and directories of the source that are no work of the run
	NotCopied   []string          `json:"not_copied,omitempty"`   // paths below Copied that the clone doesn't have, with the reasons

	Received bool `json:"received,omitempty"` // Source has commits that another machine sent, and no working tree

	Prepared bool `json:"prepared,omitempty"` // the setup of a run in Dir has succeeded

	Owner   string     `json:"owner,omitempty"`   // the run that Dir was made for, if this one continues in its clone
	Earlier *KeptPatch `json:"earlier,omitempty"` // the work there that the source repository had before; nil: none

	Device uint64 `json:"device"` // identity of Dir, so that another directory in its place is noticed
	Inode  uint64 `json:"inode"`

	Work      *Work     `json:"work,omitempty"`     // nil until the run has ended
	Applied   time.Time `json:"applied,omitzero"`   // when the work reached the source repository
	Branched  string    `json:"branched,omitempty"` // the commit of the branch there
	Discarded time.Time `json:"discarded,omitzero"` // when a person discarded the work
	Removed   time.Time `json:"removed,omitzero"`   // when Dir was removed; the record stays for the patch
}

// Cwd returns the directory in the clone for the agent.
func (c Clone) Cwd() string { return filepath.Join(c.Dir, c.Prefix) }

// RecordsIn returns the directory of the records in a state directory.
func RecordsIn(state string) string { return filepath.Join(state, "worktrees") }

// A RepositoryError says why there can be no clone of a directory. Trying again doesn't help.
type RepositoryError struct {
	Dir    string
	Reason string
}

func (e *RepositoryError) Error() string {
	return fmt.Sprintf("make worktree of %s: %s", e.Dir, e.Reason)
}

// ErrReplaced says that a clone isn't the directory that was made.
var ErrReplaced = errors.New("the clone was removed or replaced")

// check returns ErrReplaced unless the clone is still the directory that was made. Otherwise
// an agent could put a link to a directory of the user in its place.
func (c Clone) check() error {
	info, err := os.Lstat(c.Dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrReplaced, err)
	}
	device, inode := identity(info)
	if !info.IsDir() || device != c.Device || inode != c.Inode {
		return fmt.Errorf("%w: %s", ErrReplaced, c.Dir)
	}
	return nil
}

func identity(info os.FileInfo) (device, inode uint64) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return uint64(stat.Dev), stat.Ino
}

func (s Store) recordFile(run string) string { return filepath.Join(s.Records, run+".json") }

// Update makes a changed record durable.
func (s Store) Update(c Clone) error { return s.write(c) }

// write makes the record of a clone durable.
func (s Store) write(c Clone) error {
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write record of worktree: %w", err)
	}
	return dirtree.WriteFile(s.recordFile(c.Run), append(text, '\n'))
}

// Open returns the clone of a run, and whether there is one.
func (s Store) Open(run string) (c Clone, ok bool, err error) {
	if s.Records == "" || run == "" {
		return Clone{}, false, nil
	}
	text, err := os.ReadFile(s.recordFile(run))
	if errors.Is(err, os.ErrNotExist) {
		return Clone{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err == nil && (c.Run != run || !filepath.IsAbs(c.Dir) || filepath.Base(filepath.Dir(c.Dir)) != cmp.Or(c.Owner, run)) {
		err = fmt.Errorf("%s is not the record of a clone", s.recordFile(run)) // Remove removes the directory above Dir
	}
	if err != nil {
		return Clone{}, false, fmt.Errorf("read record of worktree: %w", err)
	}
	return c, true, nil
}

// CheckDir returns why a directory can't have clones: it is inside the mailbox or the state
// directory.
func CheckDir(dir, mailbox, state string) error {
	for name, other := range map[string]string{"the mailbox": mailbox, "the state directory": state} {
		if dir == other || strings.HasPrefix(dir, other+"/") {
			return fmt.Errorf("%s is inside %s %s; choose another directory", dir, name, other)
		}
	}
	return nil
}
