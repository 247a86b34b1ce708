package ledger

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"mailboxd/internal/fault"
	"mailboxd/internal/index"
	"mailboxd/internal/journal"
	"mailboxd/internal/ledgerimport"
)

// An import makes a journal of the ledger.db of an earlier version:
//
//	journal.importing   is written, whole and synced
//	ledger.db.imported  is the earlier ledger, under a second name
//	ledger.db           becomes the mark, in one step: the import is done
//	journal             is what journal.importing was
//
// A start that finds the earlier ledger.db imports it from the beginning, and one that finds
// the mark goes on behind it. The mark is a database whose version is above those of earlier
// versions, so that they refuse it instead of beginning an empty ledger.
const (
	importingEnd = ".importing"
	importedEnd  = ".imported"
	markVersion  = ledgerimport.Version + 1
)

// ErrNewer says that a newer mailboxd wrote the ledger. It was not touched.
var ErrNewer = journal.ErrNewer

// errMarked says that a ledger.db is the mark of this version.
var errMarked = errors.New("is imported")

// inspect looks at a ledger.db. It returns nil for the ledger of an earlier version, errMarked,
// ErrNewer, fs.ErrNotExist, ledgerimport.ErrUnreadable, or an error of the disk.
func inspect(path string) error {
	header := make([]byte, 64)
	if file, err := os.Open(path); err == nil {
		_, err = file.ReadAt(header, 0)
		_ = file.Close()
		if err == nil && string(header[:16]) == "SQLite format 3\x00" && binary.BigEndian.Uint32(header[60:]) == markVersion {
			return errMarked
		}
	}
	return ledgerimport.Check(path)
}

// checkReader returns an error if a ledger is that of an earlier version, which has no journal
// yet, or that of a newer one.
func checkReader(path string) error {
	found := inspect(path)
	switch {
	case found == nil:
		return errors.New("is of an earlier version; the daemon imports it when it starts")
	case errors.Is(found, ErrNewer):
		return found
	}
	return nil
}

// importEarlier imports the ledger of an earlier version.
func importEarlier(path string, progress func(done, total int)) error {
	err := writeImport(path, progress)
	if err == nil {
		err = keepImported(path)
	}
	if err == nil {
		err = leaveMark(path)
	}
	if err == nil {
		err = finishImport(path)
	}
	if err != nil {
		return fmt.Errorf("import the ledger of an earlier version: %w", err)
	}
	return nil
}

// writeImport writes the journal aside.
func writeImport(path string, progress func(done, total int)) error {
	aside := Dir(path) + importingEnd
	if err := errors.Join(os.RemoveAll(aside), index.Remove(indexPath(path))); err != nil {
		return err
	}
	earlier, err := ledgerimport.Open(path)
	if err != nil {
		return err
	}
	w := importer{progress: progress}
	var last uint64
	w.total, last, err = earlier.Size()
	if err == nil {
		w.journal, err = journal.Open(aside, journal.Options{After: last})
	}
	if err != nil {
		return errors.Join(err, earlier.Close())
	}
	if w.index, err = index.Open(indexPath(path)); err != nil {
		return errors.Join(err, w.journal.Close(), earlier.Close())
	}
	err = earlier.Events(w.add)
	if err == nil && w.last.N == 0 { // without an event there would be no journal
		none := index.EventGone(int64(last))
		err = w.add([]journal.Event{{Kind: none.Kind(), Data: none.AppendJSON(nil)}})
	}
	if err == nil {
		err = w.flush()
	}
	if err = errors.Join(err, w.journal.Close(), w.index.Close(), earlier.Close()); err == nil {
		err = fault.Read("import: journal written")
	}
	return err
}

// importGroup is how many bytes of an import are one group of the journal.
const importGroup = 4 << 20

// An importer appends what an earlier ledger has, and has the index take it.
type importer struct {
	journal  *journal.Journal
	index    *index.Index
	group    []journal.Event
	bytes    int
	last     journal.Event
	done     int // tasks
	total    int
	progress func(done, total int)
}

// add takes the events of a task, or others.
func (w *importer) add(events []journal.Event) error {
	for _, e := range events {
		e.N = w.journal.Head().N + uint64(len(w.group)) + 1
		if e.At.IsZero() {
			e.At = w.last.At
		}
		w.last = e
		w.group = append(w.group, e)
		w.bytes += len(e.Data)
		for _, b := range e.Bodies {
			w.bytes += len(b.Text)
		}
		if w.bytes >= importGroup {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	w.done = min(w.done+1, w.total)
	return nil
}

func (w *importer) flush() error {
	mark, err := w.journal.Append(w.group)
	if err == nil {
		err = w.index.Add(w.group, mark)
	}
	w.group, w.bytes = w.group[:0], 0
	if err == nil {
		err = fault.Read("import: group written")
	}
	if err == nil && w.progress != nil {
		w.progress(w.done, w.total)
	}
	return err
}

// keepImported gives the earlier ledger a second name, unless it has one.
func keepImported(path string) error {
	earlier, err := os.Lstat(path)
	if err != nil {
		return err
	}
	kept := path + importedEnd
	for n := 2; ; n++ {
		info, err := os.Lstat(kept)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil || os.SameFile(info, earlier) {
			return err
		}
		kept = fmt.Sprintf("%s%s.%d", path, importedEnd, n)
	}
	if err := os.Link(path, kept); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return fault.Read("import: earlier ledger kept")
}

// leaveMark puts the mark in the place of a ledger.db, or of none.
func leaveMark(path string) error {
	aside := path + ".new"
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", aside)
	if err == nil {
		_, err = db.Exec(fmt.Sprintf("PRAGMA user_version = %d", markVersion))
		err = errors.Join(err, db.Close())
	}
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = fault.Read("import: mark written")
	}
	if err == nil {
		err = os.Rename(aside, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err == nil {
		err = fault.Read("import: marked")
	}
	return err
}

// finishImport does what follows the mark.
func finishImport(path string) error {
	for _, end := range ledgerimport.Ends[1:] { // the one file has everything
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := fault.Read("import: files of the earlier ledger removed"); err != nil {
		return err
	}
	if err := os.Rename(Dir(path)+importingEnd, Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	return fault.Read("import: done")
}
