// Package journal keeps events in append-only files that a hash chain covers.
//
// A segment is a file of lines of JSON, <number>.jsonl. Its first line is a header:
// the number, and the event and hash that the segment follows. Each event is a line.
// A group is the events of one commit. It ends with a line that has the SHA-256 over
// the hash of the group before and the SHA-256 of each line of the group. A line is
// hashed without its bodies and with their digests, so that the chain still holds
// after a purge has removed bodies. The file "head" says how far the journal is at
// least; it is written when a segment begins, and by Open and Close.
//
// # Durability
//
// Append returns after one write and one fdatasync. A file whose write or sync failed
// is not appended to again: a later sync can succeed although pages were lost. The
// next Append has to bring the same group. It cuts what the failed write has left, as
// far as the disk lets it, and begins a new segment with the group. If that fails as
// well, the next try removes this segment and makes another file.
//
// So a segment can have bytes behind the group that the next segment follows. They
// are allowed if the header of the next segment says "retry" and they are no whole
// group, or the group that was retried; that counts once. Every other group was
// durable before the one behind it was written.
//
// # Recovery
//
// The journal ends with the last whole group of the last segment. What follows is a
// torn tail, which Open cuts, if it can be a part of a single group: no line in it
// ends a group, except the last line, which ends the next group. Everything else is
// damage. The last group may be whole in memory and not on the disk, if its sync
// failed before the process died. Open writes it again in place, so that its pages
// are written once more, and syncs it.
//
// One process writes; it locks the directory. Readers lock nothing and write nothing.
// They read a segment up to the size that it had when they looked, and stop at the
// last whole group, which may not be durable yet.
//
// A disk that destroys a block while it writes it can take the end of the group before
// with it. The journal reports that as damage or, in the last group, as a torn tail.
package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"mailboxd/internal/fault"
)

const (
	defaultSegmentSize = 64 << 20
	maxGroup           = 1 << 30 // bytes of a group
	maxKept            = 4 << 20 // bytes of memory that are kept for the next group
)

var (
	// ErrBusy says that another process writes to the journal.
	ErrBusy = errors.New("another process writes to the journal")
	// ErrNewer says that a newer version wrote what there is.
	ErrNewer = errors.New("was written by a newer mailboxd")
	// ErrOtherGroup says that the group whose Append failed has to come first.
	ErrOtherGroup = errors.New("the group whose append failed has to be appended first")
)

// Options are how Open opens a journal. The zero value checks everything.
type Options struct {
	// SegmentSize is how large a segment is when it is closed; 0 means 64 MiB.
	SegmentSize int64
	// From is a Position that Append has returned. Open checks what is behind it.
	From Position
	// After is the number before the first event of a new journal.
	After uint64
}

// A Journal appends. One goroutine at a time may use it; any may call Purge.
type Journal struct {
	dir         string
	lock        *os.File // the directory
	file        *os.File // the last segment; nil: the next append begins another one
	segmentSize int64

	at     Position // the last durable group
	head   Position // what the head file says
	failed *Hash    // the group whose append failed; nil: none
	dirty  bool     // the last segment may have bytes behind at
	begun  bool     // the segment after it failed, and its file is there

	text []byte // of the group that is written
	sums []byte // for its hash

	purging sync.Mutex // one purge at a time writes aside
}

// Open opens the journal of a directory for appending, and makes the directory if it
// is not there. It cuts a torn tail. Damage is a *DamageError.
func Open(dir string, options Options) (*Journal, error) {
	j := &Journal{dir: dir, segmentSize: options.SegmentSize}
	if j.segmentSize == 0 {
		j.segmentSize = defaultSegmentSize
	}
	err := j.lockDir()
	if err == nil {
		err = j.recover(options.From, options.After)
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", errors.Join(err, j.closeFiles()))
	}
	return j, nil
}

func (j *Journal) lockDir() (err error) {
	if err = os.Mkdir(j.dir, 0o700); err == nil {
		err = syncDir(filepath.Dir(j.dir))
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if j.lock, err = os.Open(j.dir); err != nil {
		return err
	}
	err = unix.Flock(int(j.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("%s: %w", j.dir, ErrBusy)
	}
	return err
}

// recover finds the end of the journal and repairs the last segment.
func (j *Journal) recover(from Position, after uint64) error {
	if err := removeAside(j.dir); err != nil {
		return err
	}
	head, err := readHead(j.dir)
	if err != nil {
		return err
	}
	w, err := newWalk(j.dir, from)
	w.anchors = []anchor{{head, "the head"}}
	if err == nil {
		err = w.run(func(*group) error { return nil })
	}
	if err = errors.Join(err, w.close()); err != nil {
		return err
	}
	j.at = w.at
	if w.last > j.at.Segment { // it has no whole group
		err := os.Remove(segmentPath(j.dir, w.last))
		if err = errors.Join(err, syncDir(j.dir)); err != nil {
			return err
		}
	}
	if j.at.Segment == 0 {
		j.at.N, j.head.N = after, after
		return nil
	}
	if j.at.same(head) && w.torn == 0 {
		j.head = j.at
	} else if err := j.repair(w.lastGroup); err != nil {
		return err
	}
	if j.at.Offset < j.segmentSize {
		j.file, err = os.OpenFile(segmentPath(j.dir, j.at.Segment), os.O_WRONLY, 0)
	}
	return err
}

// repair cuts the last segment behind the last group, which begins at an offset, and
// writes that group again.
func (j *Journal) repair(offset int64) error {
	file, err := os.OpenFile(segmentPath(j.dir, j.at.Segment), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	text := make([]byte, j.at.Offset-offset)
	if _, err = file.ReadAt(text, offset); err == nil {
		err = file.Truncate(j.at.Offset)
	}
	if err == nil {
		err = writeText(file, text, offset)
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = syncDir(j.dir)
	}
	if err == nil {
		_ = j.WriteHead() // the disk may be full: then an Append writes it, or Close
	}
	return err
}

// Head returns the end of the journal: the last durable group.
func (j *Journal) Head() Position { return j.at }

// Append makes a group durable and returns its end. The numbers of the events go on
// from Head().N without a gap. Append sets the Places and the digests of bodies. If
// the disk fails, the outcome is unknown, and the next Append has to bring the same
// group. Any other error leaves the journal as it was.
func (j *Journal) Append(group []Event) (Position, error) {
	if len(group) == 0 {
		return j.at, nil
	}
	end, err := j.encode(group)
	if err == nil && j.failed != nil && *j.failed != end.Hash {
		err = ErrOtherGroup
	}
	if err == nil {
		if err = j.write(); err != nil {
			j.failed = &end.Hash
		}
	}
	if err != nil {
		return j.at, fmt.Errorf("append to journal: %w", err)
	}
	j.at, j.failed, j.dirty, j.begun = end, nil, false, false
	if j.head.Segment != end.Segment {
		_ = j.WriteHead() // if it fails, the next Append writes it, or Close
	}
	if end.Offset >= j.segmentSize {
		_ = j.file.Close() // it is synced
		j.file = nil
	}
	return j.at, nil
}

// encode makes the text of a group, behind a header if it begins a segment, and
// returns where it will end.
func (j *Journal) encode(group []Event) (end Position, err error) {
	end = j.at
	if cap(j.text) > maxKept {
		j.text = nil
	}
	b := j.text[:0]
	if j.file == nil {
		end.Segment, end.Offset = end.Segment+1, 0
		b = appendHeader(b, header{end.Segment, j.at.N, j.at.Hash, j.dirty})
	}
	j.sums = append(j.sums[:0], j.at.Hash[:]...)
	for i := range group {
		e, start, bodies := &group[i], len(b), 0
		if e.N != end.N+1 {
			return end, fmt.Errorf("event %d follows event %d", e.N, end.N)
		}
		if b, bodies, err = encodeEvent(b, e); err != nil {
			return end, fmt.Errorf("event %d: %w", e.N, err)
		}
		if len(b) > maxGroup {
			return end, fmt.Errorf("the group is larger than %d bytes", maxGroup)
		}
		e.Place = Place{e.N, end.Segment, end.Offset + int64(start), len(b) - start}
		sum := sumLine(b[start:], bodies-start)
		j.sums = append(j.sums, sum[:]...)
		end.N = e.N
	}
	end.Hash = sha256.Sum256(j.sums)
	j.text = appendGroupLine(b, group[0].N, end.N, end.Hash)
	end.Offset += int64(len(j.text))
	return end, nil
}

// write makes the text of a group durable.
func (j *Journal) write() error {
	if j.file == nil {
		return j.begin()
	}
	err := writeText(j.file, j.text, j.at.Offset)
	if err != nil {
		_ = j.file.Close() // nobody asks it any more
		j.file, j.dirty = nil, true
	}
	return err
}

// begin makes a segment of the text.
func (j *Journal) begin() error {
	path := segmentPath(j.dir, j.at.Segment+1)
	if j.dirty && !j.begun && fault.Read("cut journal segment") == nil { // once begun, it can be purged
		_ = os.Truncate(segmentPath(j.dir, j.at.Segment), j.at.Offset) // or readers skip what is there
	}
	if j.begun {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	j.begun = true
	if err = writeText(file, j.text, 0); err == nil {
		err = syncDir(j.dir)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	j.file = file
	return nil
}

// Close writes the head file and closes the journal.
func (j *Journal) Close() error {
	var err error
	if j.head != j.at {
		err = j.WriteHead()
	}
	if err = errors.Join(err, j.closeFiles()); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}

func (j *Journal) closeFiles() (err error) {
	for _, file := range []*os.File{j.file, j.lock} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

// Abandon forgets the group whose Append failed, so that another one may follow. After nil
// the journal does not have it. It changes nothing if no Append has failed.
func (j *Journal) Abandon() error {
	if j.failed == nil {
		return nil
	}
	if err := j.cut(); err != nil {
		return fmt.Errorf("abandon group: %w", err)
	}
	j.failed, j.dirty, j.begun = nil, false, false
	return nil
}

// cut makes durable that there is nothing behind the last durable group.
func (j *Journal) cut() error {
	if j.begun {
		if err := os.Remove(segmentPath(j.dir, j.at.Segment+1)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := syncDir(j.dir); err != nil {
			return err
		}
	}
	if !j.dirty || j.at.Segment == 0 {
		return nil
	}
	file, err := os.OpenFile(segmentPath(j.dir, j.at.Segment), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err = file.Truncate(j.at.Offset); err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
