package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mailboxd/internal/fault"
)

// A redo is the redo log: what groups have changed, frame after frame, until that
// is in the tables. It has two files, each written from its beginning again and
// again: while the frames of one are brought to the tables, groups go to the
// other. A frame is durable by one write, in blocks of its own, to a place that was
// written before, where a commit of SQLite writes a page for each row and more.
type redo struct {
	files  [2]*os.File
	active int     // which file the next frame goes to
	offset int64   // and where
	last   uint64  // the number of the last frame
	broken bool    // nobody knows what the last write has left: the tables have to take it in
	frame  []byte  // the last one, for its memory
	blocks []byte  // and as it was written
	row    []value // room for one of it
}

// redoEnds are the ends of the names of its files, beside the ledger.
var redoEnds = [2]string{"-redo1", "-redo2"}

// openRedo opens the redo log beside a ledger, and makes an empty one where there is
// none.
func openRedo(path string) (*redo, error) {
	r := &redo{row: make([]value, 0, mostValues)}
	fresh := false
	for i, end := range redoEnds {
		info, err := os.Lstat(path + end)
		fresh = fresh || err != nil || info.Size() == 0 // its name may not be on the disk
		if r.files[i], err = os.OpenFile(path+end, os.O_RDWR|os.O_CREATE|unix.O_DSYNC, 0o600); err == nil {
			err = writeDirect(r.files[i])
		}
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	if err := unix.FcntlFlock(r.files[0].Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path+redoEnds[0], err), r.close())
	}
	if fresh {
		if err := syncDir(filepath.Dir(path)); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}

// redoBusy reports whether somebody writes to the redo log beside a ledger.
func redoBusy(path string) (bool, error) {
	file, err := os.Open(path + redoEnds[0])
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	lock := unix.Flock_t{Type: unix.F_RDLCK}
	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &lock)
	return lock.Type != unix.F_UNLCK, errors.Join(err, file.Close())
}

func (r *redo) close() error {
	var errs []error
	for _, file := range r.files {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}

// clear leaves nothing in its files, of which the tables have everything.
func (r *redo) clear() (err error) {
	for _, file := range r.files {
		err = errors.Join(err, file.Truncate(0), file.Sync())
	}
	return err
}

// add makes the frame of a layer durable. One that fails has its number too: nobody
// knows whether it is on the disk, and it is not to be taken up once the tables have
// what came in its place.
func (r *redo) add(c *memtable) error {
	r.last++
	r.frame = appendFrame(r.frame[:0], r.last, c, r.row)
	r.blocks = blocks(r.blocks, len(r.frame))
	clear(r.blocks[copy(r.blocks, r.frame):])
	file, err := r.files[r.active], fault.Read("write ledger")
	if err == nil {
		_, err = file.WriteAt(r.blocks, r.offset) // O_DSYNC
	}
	if err != nil {
		r.broken = true
		return fmt.Errorf("write redo log: %w", err)
	}
	r.offset += int64(len(r.blocks))
	if cap(r.frame) > largeFrame {
		r.frame, r.blocks = nil, nil
	}
	fault.SyncedUpTo("redo-synced", file, r.offset)
	return nil
}

// skip has the tables take in what comes next, and know by a number of its own that
// they did: whatever that is, it is written over what a COMMIT that failed has left.
func (r *redo) skip() {
	r.last++
	r.broken = true
}

// largeFrame is more than a frame takes in general: a batch of lines is 1 MB, and what
// is recorded of them half as much again.
const largeFrame = 2 << 20

// turn has the next frame go to the other file, of which everything is in the
// tables.
func (r *redo) turn() { r.rewind(1 - r.active) }

// rewind has the next frame go to the beginning of a file.
func (r *redo) rewind(active int) {
	r.active, r.offset, r.broken = active, 0, false
	fault.Forgotten(r.files[active])
}

// An extent is how far the tables have what the redo log has.
type extent struct {
	applied uint64 // the number of the last frame that they have
	live    bool   // there may be later ones, so both files have to be there
}

const (
	extentQuery   = "SELECT applied, live FROM redo"
	appliedUpdate = "UPDATE redo SET applied = ?1 WHERE applied <> ?1"
	liveUpdate    = "UPDATE redo SET live = ?1 WHERE live <> ?1"
)

func scanExtent(r row) (e extent, err error) {
	var applied int64
	err = r.Scan(&applied, &e.live)
	e.applied = uint64(applied)
	return e, err
}

// setLive has the tables say whether the redo log may have more than they do.
func setLive(write *statements, live bool) error {
	flag := int64(0)
	if live {
		flag = 1
	}
	_, err := write.run(liveUpdate, flag)
	return err
}

// takeUp is redo in a transaction of its own, which is committed unless may, asked
// last, says why not. What is not is taken back when the connection is closed.
func (w *tables) takeUp(write *statements, path string, may func() error) (last uint64, err error) {
	if _, err = write.run("BEGIN IMMEDIATE"); err == nil {
		last, err = w.redo(path)
	}
	if err == nil {
		err = may()
	}
	if err == nil {
		err = endTables(write, path, last)
	}
	return last, err
}

// redo brings to the tables what the redo log beside a ledger has and they do not,
// in a transaction that somebody else has begun, and returns the number of the last
// frame.
func (w *tables) redo(path string) (last uint64, err error) {
	have, err := scanExtent(w.conn.QueryRowContext(background, extentQuery))
	if err != nil {
		return 0, err
	}
	frames, err := readFrames(path, have)
	for _, rows := range frames {
		if err == nil {
			err = eachRow(rows, w.add)
		}
		if err == nil {
			err = w.flush()
		}
	}
	return have.applied + uint64(len(frames)), err
}

// readFrames returns what both files have and the tables do not, in order. A file that
// has to be there and is missing makes the ledger unreadable. So does a frame that is
// not whole when a later one is: it was durable before that one was written. A log that
// ends exactly between two frames is taken for a whole one.
func readFrames(path string, have extent) (frames [][]byte, err error) {
	var found [2][][]byte
	var first [2]uint64
	for i, end := range redoEnds {
		text, err := os.ReadFile(path + end)
		switch {
		case errors.Is(err, os.ErrNotExist) && have.live:
			return nil, fmt.Errorf("%w: its redo log %s is missing", errUnreadable, filepath.Base(path)+end)
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return nil, err
		}
		if found[i], first[i], err = framesOf(text, have.applied); err != nil {
			return nil, fmt.Errorf("%w: its redo log %s has %w", errUnreadable, filepath.Base(path)+end, err)
		}
	}
	older := 0
	if first[1] < first[0] {
		older = 1
	}
	next := have.applied + 1
	for _, i := range [2]int{older, 1 - older} {
		if len(found[i]) == 0 {
			continue
		}
		if first[i] != next {
			return nil, fmt.Errorf("%w: its redo log goes on with frame %d, and it ends with %d", errUnreadable, first[i], next-1)
		}
		frames = append(frames, found[i]...)
		next += uint64(len(found[i]))
	}
	return frames, nil
}

// framesOf returns the rows of the frames that a file begins with, from the first
// one that is not applied. Behind them is what was left of earlier turns, of which
// all is applied; a later frame there is an error.
func framesOf(text []byte, applied uint64) (frames [][]byte, first uint64, err error) {
	var last uint64
	for at := 0; ; {
		number, rows, end, ok := nextFrame(text, at, last)
		if !ok {
			return frames, first, noLaterFrame(text[at:], max(last, applied))
		}
		if number > applied {
			if len(frames) == 0 {
				first = number
			}
			frames = append(frames, rows)
		}
		last, at = number, end
	}
}

// nextFrame returns the frame that follows another one which ended somewhere: in the
// next block, or right there, where versions that wrote no blocks have it.
func nextFrame(text []byte, at int, last uint64) (number uint64, rows []byte, end int, ok bool) {
	for _, at := range [2]int{wholeBlocks(at), at} {
		number, rows, rest, ok := cutFrame(text[min(at, len(text)):])
		if ok && (last == 0 || number == last+1) {
			return number, rows, len(text) - len(rest), true
		}
	}
	return 0, nil, 0, false
}

// noLaterFrame returns an error if a frame that was written after the last one is
// anywhere in a text.
func noLaterFrame(text []byte, last uint64) error {
	for at := range max(0, len(text)-frameHead+1) {
		number := binary.LittleEndian.Uint64(text[at+8:])
		if number <= last || number-last > uint64(len(text)) { // so many frames are not in it
			continue
		}
		if _, _, _, ok := cutFrame(text[at:]); ok {
			return fmt.Errorf("frame %d, and the one after %d is damaged", number, last)
		}
	}
	return nil
}
