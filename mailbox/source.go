package mailbox

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A source is one task file, whatever it is called: the same inode.
type source struct {
	cursor  Cursor    // how far it was read
	saved   Cursor    // how far that is written down
	counted Cursor    // as it is among Tail.heads
	scanned int64     // no LF between cursor.Offset and here
	want    int64     // how much to read at a time
	lines   int       // how many lines to return at a time; 0: that is not known yet
	file    *os.File  // nil when it is not open
	seen    stamp     // as of the last look
	since   time.Time // since when it looks like that
	after   *source   // the file that had the name before; read to its end first
	state
}

type state struct {
	queued  bool // in Tail.ready
	strange bool // may be a copy: its first block was not compared yet
	retired bool // has no name any more
	fromEnd bool // to start at its end
	final   bool // to read its last words, although they have no newline
	warned  bool // its missing newline was reported
}

var errReplaced = errors.New("replaced while it was being opened")

// piece is what one reading of a source gave. Without lines the cursor may
// have moved all the same.
type piece struct {
	lines  []Line
	cursor Cursor
	end    bool // there is no more for now
}

// read takes the next lines. The cursor stays where it is, the lines will come
// again, but what was found out about a line without an end is kept.
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

// unchanged reports whether the file still begins with what was read of it.
func (s *source) unchanged(size int64) (bool, error) {
	c := s.cursor
	if size < max(c.Offset, s.scanned) {
		return false, nil
	}
	if c.Offset == 0 {
		return true, nil
	}
	var block [blockLen]byte // to make one each time was a fifth of what a line allocated
	tail, err := s.fill(block[:c.block()], c.Offset-c.block())
	if err != nil || !bytes.Equal(hash(tail), c.Tail) {
		return false, err
	}
	if c.Offset <= blockLen {
		return bytes.Equal(c.Head, c.Tail), nil // one and the same block
	}
	head, err := s.fill(block[:], 0)
	return err == nil && bytes.Equal(hash(head), c.Head), err
}

// readLines reads length bytes at the cursor and cuts them into lines. They are
// read together with the block before them, so that the next cursor vouches
// for the very bytes that were read.
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
	s.want = min(max(2*int64(used), 64<<10), opts.BatchBytes) // short lines fill a batch before it is full of bytes
	end := c.Offset + int64(used)
	read := before[:end-start]
	next := c.at(end, headOf(read, start), read[max(0, len(read)-blockLen):])
	return s.piece(lines, next, end >= size), nil
}

// headOf returns the first block of a file when read, which stands at start,
// has it; otherwise it is known already.
func headOf(read []byte, start int64) []byte {
	if start > 0 {
		return nil
	}
	return read[:min(len(read), blockLen)]
}

// piece completes the lines.
func (s *source) piece(lines []Line, next Cursor, end bool) piece {
	for i := range lines {
		lines[i].File = s.cursor.Path
		lines[i].Replayed = lines[i].Offset < s.cursor.Replay
	}
	return piece{lines: lines, cursor: next, end: end}
}

// bytes reads length bytes at offset, or as many as there are.
func (s *source) bytes(offset, length int64) ([]byte, error) {
	return s.fill(make([]byte, max(0, length)), offset)
}

// fill reads what is at offset into buf, and returns what there is of it.
func (s *source) fill(buf []byte, offset int64) ([]byte, error) {
	n, err := s.file.ReadAt(buf, offset)
	if err == io.EOF {
		err = nil // it shrank meanwhile: the next look will see
	}
	return buf[:n], err
}

// open opens the file by its name in dir, unless that means another file by
// now than the regular one that was seen there.
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
		s.file.Close() // it was only read
		s.file = nil
	}
}

func (s *source) key() inode { return inode{s.cursor.Dev, s.cursor.Inode} }

// cursorDue reports whether the cursor says more than what is written down.
func (s *source) cursorDue() bool { return !s.cursor.equal(s.saved) }
