// Package backup copies a mailbox with its state while a daemon serves it, restores such a
// copy, and moves a mailbox. A restored mailbox starts nothing by itself that may have run
// since the backup.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/dirtree"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// A Location is where a mailbox and its state are, as absolute paths without symlinks.
type Location struct{ Root, State string }

// LocationOf returns the location of a mailbox that may be missing. An empty state is the default
// of the root.
func LocationOf(root, state string) (p Location, err error) {
	if p.Root, err = mailbox.Resolve(root); err == nil && state == "" {
		state, err = mailbox.DefaultStateDir(p.Root)
	}
	if err == nil {
		p.State, err = mailbox.Resolve(state)
	}
	return p, err
}

// Ledger returns the path of the ledger.
func (p Location) Ledger() string { return filepath.Join(p.State, ledgerName) }

// What a backup has in its directory, and names in a state directory.
const (
	mailboxName = "mailbox"
	stateName   = "state"
	recordName  = "backup.json"

	ledgerName  = "ledger.db"
	keepersName = mailbox.KeepersDir
)

// A Record describes a backup. It is written last: a directory without it is no backup.
type Record struct {
	Format   int       `json:"format"`
	Made     time.Time `json:"made"`
	Mailboxd string    `json:"mailboxd"` // the version that made it
	Root     string    `json:"root"`     // where the mailbox was
	State    string    `json:"state"`    // and its state
	Tasks    int       `json:"tasks"`    // in their latest revisions
	Open     int       `json:"open"`     // of them
	Omitted  []string  `json:"omitted,omitempty"`
	Digests  string    `json:"digests,omitempty"` // SHA-256 of digests.jsonl; absent: made by an earlier version
	Digest   string    `json:"digest,omitempty"`  // of the other members
}

// format is the version of the layout of a backup. Those of the earlier one have no digests.
const (
	format               = 2
	formatWithoutDigests = 1
)

// Make copies a mailbox and its state to a directory, which it creates with mode 0700. The
// ledger is copied first, as one moment. What the rest has beyond that moment is noticed when
// the copy is restored: lines behind the reading positions, and runs that the ledger doesn't
// know.
func Make(ctx context.Context, at Location, dir, version string) (r Record, err error) {
	if dir, err = checkTarget(at, dir); err != nil {
		return r, fmt.Errorf("make backup: %w", err)
	}
	r = Record{Format: format, Mailboxd: version, Root: at.Root, State: at.State}
	if err = r.snapshot(ctx, at, dir); err == nil {
		err = r.copyFiles(ctx, at, dir)
	}
	if err == nil {
		err = r.writeDigests(ctx, dir)
	}
	if err == nil {
		err = syncAll(dir)
	}
	if err == nil {
		err = r.write(dir)
	}
	if err != nil {
		return r, fmt.Errorf("make backup in %s: %w; it is incomplete", dir, err)
	}
	return r, nil
}

// checkTarget creates the directory of a backup. It refuses one that has entries, or that is
// inside the mailbox or its state.
func checkTarget(at Location, dir string) (string, error) {
	dir, err := mailbox.Resolve(dir)
	if err != nil {
		return "", err
	}
	for _, other := range []struct{ name, path string }{{"the mailbox", at.Root}, {"the state directory", at.State}} {
		if inside(dir, other.path) {
			return "", fmt.Errorf("%s is inside %s %s; name a directory outside", dir, other.name, other.path)
		}
	}
	if _, err := os.Stat(at.Ledger()); err != nil {
		return "", fmt.Errorf("%s has no ledger, so there is nothing to back up: %w", at.State, err)
	}
	if err := mustBeEmpty(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o700)
}

// mustBeEmpty refuses a directory with entries, and what is no directory.
func mustBeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty; name a new directory", dir)
	}
	return nil
}

func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// snapshot copies the ledger, and counts its tasks.
func (r *Record) snapshot(ctx context.Context, at Location, dir string) error {
	state := filepath.Join(dir, stateName)
	if err := os.Mkdir(state, 0o700); err != nil {
		return err
	}
	records, err := ledger.OpenReader(at.Ledger())
	if err != nil {
		return err
	}
	r.Made = time.Now().UTC()
	copied := filepath.Join(state, ledgerName)
	if err := errors.Join(records.WriteSnapshot(ctx, copied), records.Close()); err != nil {
		return err
	}
	if records, err = ledger.OpenReader(copied); err != nil {
		return err
	}
	defer records.Close()
	if r.Tasks, err = records.Count(ctx, ledger.Filter{}); err == nil {
		r.Open, err = records.Count(ctx, ledger.Filter{States: openStates})
	}
	return err
}

// openStates are all states but Done.
var openStates = []task.State{task.Received, task.Held, task.Queued, task.Running, task.Waiting, task.Review}

// copyFiles copies all but the ledger.
func (r *Record) copyFiles(ctx context.Context, at Location, dir string) error {
	box := filepath.Join(dir, mailboxName)
	if err := os.Mkdir(box, 0o700); err != nil {
		return err
	}
	omitted, err := dirtree.Copy(ctx, at.Root, box, dirtree.CopyOptions{Skip: isPrivate})
	r.addOmitted(mailboxName, omitted)
	if err == nil {
		omitted, err = dirtree.Copy(ctx, at.State, filepath.Join(dir, stateName), dirtree.CopyOptions{Skip: isOfDaemon})
		r.addOmitted(stateName, omitted)
	}
	return err
}

// maxOmitted limits the paths in a record.
const maxOmitted = 1000

func (r *Record) addOmitted(dir string, names []string) {
	for _, name := range names[:min(len(names), maxOmitted)] {
		r.Omitted = append(r.Omitted, dir+"/"+name)
	}
}

// isPrivate reports whether a name of a mailbox is mailboxd's own, for files that are being
// written.
func isPrivate(name string) bool { return name == ".mailboxd" }

// isOfDaemon reports whether a name of a state directory has no meaning in a copy: the files
// of the ledger, which has its own copy, the mailbox that the state belongs to, sockets, and
// what git does at the moment.
func isOfDaemon(name string) bool {
	dir, base := filepath.Split(name)
	switch {
	case dir == "":
		return strings.HasPrefix(base, ledgerName) || base == "root" || strings.HasSuffix(base, ".sock")
	case dir == keepersName+"/":
		return base != "killed"
	case dir == "worktrees/":
		return strings.HasPrefix(base, "git-") || strings.HasPrefix(base, ".new-")
	}
	return false
}

func (r *Record) write(dir string) error {
	r.Digest = r.digest()
	text, err := json.Marshal(r, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return dirtree.WriteFile(filepath.Join(dir, recordName), append(text, '\n'))
}

// ReadRecord reads the record of a backup.
func ReadRecord(dir string) (r Record, err error) {
	text, err := os.ReadFile(filepath.Join(dir, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%s is no complete backup: it has no %s", dir, recordName)
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && r.Format != format && r.Format != formatWithoutDigests {
		err = fmt.Errorf("has format %d, and this version knows format %d", r.Format, format)
	}
	if err != nil {
		return r, fmt.Errorf("read %s: %w", filepath.Join(dir, recordName), err)
	}
	return r, nil
}

// cursors returns the reading positions that a ledger has.
func cursors(ctx context.Context, l *ledger.Reader) ([]mailbox.Cursor, error) {
	files, err := l.Files(ctx)
	all := make([]mailbox.Cursor, len(files))
	for i, f := range files {
		all[i] = mailbox.Cursor(f)
	}
	return all, err
}

// retie gives the reading positions of a ledger the inodes of the files in a mailbox, and of
// those of runs in its state. It returns the positions in the mailbox.
func retie(ctx context.Context, l *ledger.Ledger, box *mailbox.Box, state *mailbox.State) (ofBox []mailbox.Cursor, err error) {
	before, err := cursors(ctx, l.Reader)
	if err != nil {
		return nil, err
	}
	var ofRuns []mailbox.Cursor
	for _, c := range before {
		if c.IsRunFile() {
			ofRuns = append(ofRuns, c)
		} else {
			ofBox = append(ofBox, c)
		}
	}
	if ofBox, err = box.Retie(ofBox); err == nil {
		ofRuns, err = state.Retie(ofRuns)
	}
	if err != nil {
		return nil, err
	}
	err = l.Update(ctx, func(tx *ledger.Tx) error {
		for _, c := range slices.Concat(ofBox, ofRuns) {
			if err := tx.SetFile(ledger.File(c)); err != nil {
				return err
			}
		}
		return nil
	})
	return ofBox, err
}
