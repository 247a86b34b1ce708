package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/index"
	"mailboxd/internal/journal"
	"mailboxd/internal/ledgerimport"
	"mailboxd/internal/task"
)

// ErrMissing says that there is no ledger where there was one.
var ErrMissing = errors.New("is missing")

// unreadableMark is in the name of a journal that was moved aside, before the time of that.
const unreadableMark = ".unreadable-"

// prepare sees to it that open finds a journal, or none.
func prepare(path string, o Options) (opened Opened, err error) {
	there, err := hasJournal(Dir(path))
	if err != nil {
		return opened, err
	}
	found := inspect(path)
	switch {
	case errors.Is(found, ErrNewer):
		return opened, found
	case there:
		return prepareJournal(path, found)
	case errors.Is(found, errMarked):
		if _, err := os.Lstat(Dir(path) + importingEnd); err == nil {
			return opened, finishImport(path)
		}
		o.Traces = append([]string{filepath.Base(path)}, o.Traces...)
	case errors.Is(found, fs.ErrNotExist):
	default:
		if found == nil {
			found = importEarlier(path, o.Progress)
		}
		if errors.Is(found, ledgerimport.ErrUnreadable) {
			opened.Created, opened.Cause = true, found
			opened.Aside, found = moveAside(path, ledgerimport.Ends, path, time.Now())
		}
		return opened, found
	}
	aside, err := lastAside(Dir(path))
	if err == nil {
		err = index.Remove(indexPath(path))
	}
	if err != nil {
		return opened, err
	}
	opened.Created, opened.Aside = true, aside
	if len(o.Traces) > 0 && aside == "" {
		opened.Cause = fmt.Errorf("%w, although there is %s", ErrMissing, strings.Join(o.Traces, " and "))
	}
	return opened, nil
}

// prepareJournal is prepare where there is a journal. found is what inspect says of ledger.db.
func prepareJournal(path string, found error) (opened Opened, err error) {
	if found == nil {
		return opened, fmt.Errorf("%s is of an earlier version, and %s is there too: move the one away that is not to be used", path, Dir(path))
	}
	if errors.Is(found, fs.ErrNotExist) {
		_ = leaveMark(path) // on a full disk a later start does
	}
	return opened, nil
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

// moveAside renames what can't be read, with files that have other ends, to a name that nothing
// has yet, and returns that name. The index beside the path goes.
func moveAside(from string, ends []string, path string, now time.Time) (string, error) {
	stamp := from + unreadableMark + now.UTC().Format("20060102T150405Z")
	aside := stamp
	for n := 2; ; n++ {
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		}
		aside = fmt.Sprintf("%s.%d", stamp, n)
	}
	for _, end := range ends {
		if err := os.Rename(from+end, aside+end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("move it aside: %w", err)
		}
	}
	return aside, errors.Join(syncDir(filepath.Dir(from)), index.Remove(indexPath(path)))
}

// lastAside returns the newest journal that was moved aside, or "". If there is one and none
// in its place, a start was cut short, or a person wants to start anew: what was accepted
// before may have run in either case.
func lastAside(dir string) (last string, err error) {
	entries, err := os.ReadDir(filepath.Dir(dir)) // in order of name, and so of time
	for _, e := range entries {
		earlier := strings.HasPrefix(e.Name(), "ledger.db"+unreadableMark) &&
			!slices.ContainsFunc(ledgerimport.Ends[1:], func(end string) bool { return strings.HasSuffix(e.Name(), end) })
		if earlier || strings.HasPrefix(e.Name(), filepath.Base(dir)+unreadableMark) {
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
