package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/index"
	"mailboxd/internal/journal"
	"mailboxd/internal/task"
)

// ErrMissing says that there is no ledger where there was one.
var ErrMissing = errors.New("is missing")

// unreadableMark is in the name of a journal that was moved aside, before the time of that.
const unreadableMark = ".unreadable-"

// prepare says whether there is a ledger, and removes an index without a journal.
func prepare(path string, traces []string) (opened Opened, err error) {
	dir := Dir(path)
	there, err := hasJournal(dir)
	switch {
	case err != nil:
		return opened, err
	case there:
		return opened, nil
	}
	if _, err := os.Lstat(path); err == nil {
		return opened, nil // of an earlier version; it is imported
	}
	opened.Created = true
	if opened.Aside, err = lastAside(dir); err == nil && len(traces) > 0 && opened.Aside == "" {
		opened.Cause = fmt.Errorf("%w, although there is %s", ErrMissing, strings.Join(traces, " and "))
	}
	return opened, errors.Join(err, index.Remove(indexPath(path)))
}

// hasJournal reports whether a directory has a journal. An empty one has a head.
func hasJournal(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".jsonl") || e.Name() == "head" {
			return true, nil
		}
	}
	return false, err
}

// openJournal opens the journal behind the mark of the index. If nothing ends there, a purge
// has moved it, and the index is built again; or the journal is an older copy and damaged.
func (l *Ledger) openJournal(path string) (err error) {
	dir, mark := Dir(path), l.index.Mark()
	l.journal, err = journal.Open(dir, journal.Options{From: mark})
	if !errors.Is(err, journal.ErrNoPosition) {
		return err
	}
	if _, err = journal.Verify(background, dir, mark); err == nil {
		err = errors.Join(l.index.Close(), index.Remove(indexPath(path)))
	}
	var again *index.Index
	if err == nil {
		again, err = index.Open(indexPath(path))
	}
	if err == nil {
		l.index = again
		l.journal, err = journal.Open(dir, journal.Options{})
	}
	return err
}

// moveAside renames a journal that can't be read to a name that nothing has yet, and returns
// that name. Its index goes.
func moveAside(path string, now time.Time) (string, error) {
	dir := Dir(path)
	stamp := dir + unreadableMark + now.UTC().Format("20060102T150405Z")
	aside := stamp
	for n := 2; ; n++ {
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		}
		aside = fmt.Sprintf("%s.%d", stamp, n)
	}
	if err := os.Rename(dir, aside); err != nil {
		return "", fmt.Errorf("move it aside: %w", err)
	}
	return aside, errors.Join(syncDir(filepath.Dir(dir)), index.Remove(indexPath(path)))
}

// lastAside returns the newest journal that was moved aside, or "". If there is one and none
// in its place, a start was cut short, or a person wants to start anew: what was accepted
// before may have run in either case.
func lastAside(dir string) (last string, err error) {
	entries, err := os.ReadDir(filepath.Dir(dir)) // in order of name, and so of time
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(dir)+unreadableMark) || strings.HasPrefix(e.Name(), "ledger.db"+unreadableMark) && !strings.HasSuffix(e.Name(), "-wal") {
			last = filepath.Join(filepath.Dir(dir), e.Name())
		}
	}
	return last, err
}

// syncDir makes the renames in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// noteLoss has a new ledger say that there was one before it: in an event, and until
// MarkRecovered for Lost. One that is missing has no name that it was moved to.
func (l *Ledger) noteLoss(opened Opened) error {
	data := map[string]string{}
	if opened.Aside != "" {
		data["file"] = opened.Aside
	}
	if opened.Cause != nil {
		data["reason"] = opened.Cause.Error()
	}
	text, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		return err
	}
	return l.Update(background, func(tx *Tx) error {
		tx.row(nil, index.LossRow(opened.Aside, time.Now(), time.Time{}))
		return tx.Log(task.Event{Time: time.Now(), Kind: task.KindLedgerLost, Data: text})
	})
}

// MarkRecovered notes that every line was read again that an earlier, lost ledger may have
// known.
func (tx *Tx) MarkRecovered() error {
	losses, err := tx.ledger.index.Losses(background)
	for _, loss := range losses {
		tx.row(nil, index.LossRow(loss.Aside, loss.At, time.Now()))
	}
	return err
}
