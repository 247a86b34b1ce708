package mailbox

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A source is one task file, identified by its inode.
type source struct {
	cursor  Cursor    // reading position
	saved   Cursor    // the saved position
	counted Cursor    // as counted in Tail.fingerprints
	scanned int64     // there is no LF between cursor.Offset and here
	want    int64     // bytes to read at a time
	lines   int       // lines to return at a time; 0: unknown
	file    *os.File  // nil if not open
	seen    stamp     // at the last look
	since   time.Time // when seen last changed
	after   *source   // the earlier file with this name; it is read to its end first
	state
}

type state struct {
	queued  bool // in Tail.ready
	strange bool // possibly a copy: its first block wasn't compared yet
	retired bool // without a name
	fromEnd bool // to start at its end
	final   bool // read the rest even without a newline
	warned  bool // its missing newline was reported
}

var errReplaced = errors.New("replaced while it was being opened")

// piece is the result of one read of a source. Without lines, the cursor may still have
// moved.
type piece struct {
	lines  []Line
	cursor Cursor
	end    bool // there is no more for now
}

// read reads the next lines. It doesn't move the cursor, so the lines come again, but it
// keeps the progress in a line without an end.
func (s *source) read(opts TailOptions) (piece, error) {
	info, err := s.file.Stat()
	if err != nil {
		return piece{}, err
	}
	size := info.Size()
	if s.fromEnd {
		if err := s.skipToEnd(size); err != nil {
			return piece{}, err
		}
	}
	ok, err := s.unchanged(size)
	if err != nil {
		return piece{}, err
	}
	if !ok {
		s.cursor, s.scanned, s.warned = s.cursor.anew(size), 0, false
	}
	if s.scanned > s.cursor.Offset {
		return s.readOn(size, opts)
	}
	return s.readLines(min(s.want, size-s.cursor.Offset), size, opts)
}

// unchanged reports whether the file still begins with the content that was read.
func (s *source) unchanged(size int64) (bool, error) {
	c := s.cursor
	if size < max(c.Offset, s.scanned) {
		return false, nil
	}
	if c.Offset == 0 {
		return true, nil
	}
	var block [blockLen]byte // on the stack: allocating it was a fifth of the memory of a line
	tail, err := s.fill(block[:c.block()], c.Offset-c.block())
	if err != nil || !bytes.Equal(hash(tail), c.Tail) {
		return false, err
	}
	if c.Offset <= blockLen {
		return bytes.Equal(c.Head, c.Tail), nil // both are the same block
	}
	head, err := s.fill(block[:], 0)
	return err == nil && bytes.Equal(hash(head), c.Head), err
}

// readLines reads length bytes at the cursor and cuts them into lines. The same read
// includes the block before them, so that the next cursor's hash covers the bytes that were
// read.
func (s *source) readLines(length, size int64, opts TailOptions) (piece, error) {
	c := s.cursor
	start := c.Offset - c.block()
	text, err := s.bytes(start, c.Offset-start+length)
	if err != nil {
		return piece{}, err
	}
	text, before := text[min(c.block(), int64(len(text))):], text
	lines, used := split(text, c.Offset, opts.MaxLine, s.most(opts))
	if used == 0 {
		s.scanned = c.Offset + int64(len(text))
		if s.final && s.scanned >= size {
			return s.unterminatedLine(opts)
		}
		return piece{cursor: c, end: s.scanned >= size || len(text) == 0}, nil
	}
	s.final = false
	s.want = min(max(2*int64(used), 64<<10), opts.BatchBytes) // short lines reach the line limit before the byte limit
	end := c.Offset + int64(used)
	read := before[:end-start]
	next := c.at(end, headOf(read, start), read[max(0, len(read)-blockLen):])
	return s.piece(lines, next, end >= size), nil
}

// headOf returns the first block of a file if read, which begins at start, has it;
// otherwise it is known already.
func headOf(read []byte, start int64) []byte {
	if start > 0 {
		return nil
	}
	return read[:min(len(read), blockLen)]
}

// piece sets the file of the lines and makes a piece.
func (s *source) piece(lines []Line, next Cursor, end bool) piece {
	for i := range lines {
		lines[i].File = s.cursor.Path
		lines[i].Replayed = lines[i].Offset < s.cursor.Replay
	}
	return piece{lines: lines, cursor: next, end: end}
}

// bytes reads up to length bytes at offset.
func (s *source) bytes(offset, length int64) ([]byte, error) {
	return s.fill(make([]byte, max(0, length)), offset)
}

// fill reads at offset into buf, and returns the part that was read.
func (s *source) fill(buf []byte, offset int64) ([]byte, error) {
	n, err := s.file.ReadAt(buf, offset)
	if err == io.EOF {
		err = nil // it shrank: the next look notices
	}
	return buf[:n], err
}

// open opens the file by its name in dir. It fails if the name now means another file.
func (s *source) open(dir *os.File, name string) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	file := os.NewFile(uintptr(fd), name)
	now, err := stampOf(fd)
	if err == nil && now.key != s.key() {
		err = errReplaced
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	s.file = file
	return nil
}

func (s *source) close() {
	if s.file != nil {
		s.file.Close() // read-only
		s.file = nil
	}
}

func (s *source) key() inode { return inode{s.cursor.Dev, s.cursor.Inode} }

// cursorDue reports whether the cursor has moved since it was saved.
func (s *source) cursorDue() bool { return !s.cursor.equal(s.saved) }
