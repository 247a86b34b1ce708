package mailbox

import (
	"bytes"
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
)

// scanChunk is the part of a very long line that is held in memory.
const scanChunk = 1 << 20

// lineEndBytes is what a line may have beyond its limit: a BOM and a CR.
const lineEndBytes = 4

// readOn searches for the end of a line that had none so far. It never scans the same bytes
// twice, and never holds more than a chunk.
func (s *source) readOn(size int64, opts TailOptions) (piece, error) {
	if err := s.skipHole(size); err != nil {
		return piece{}, err
	}
	text, err := s.bytes(s.scanned, min(scanChunk, size-s.scanned))
	if err != nil {
		return piece{}, err
	}
	at := bytes.IndexByte(text, '\n')
	if at < 0 {
		s.scanned += int64(len(text))
		if s.final && s.scanned >= size {
			return s.unterminatedLine(opts)
		}
		return piece{cursor: s.cursor, end: s.scanned >= size || len(text) == 0}, nil
	}
	newline := s.scanned + int64(at)
	if newline-s.cursor.Offset <= opts.MaxLine+lineEndBytes {
		return s.readLines(newline+1-s.cursor.Offset, size, opts)
	}
	if last, err := s.bytes(newline-1, 1); err == nil && string(last) == "\r" {
		return s.longLine(newline-1, newline+1, newline+1 >= size, opts.MaxLine)
	}
	return s.longLine(newline, newline+1, newline+1 >= size, opts.MaxLine)
}

// skipHole skips a hole in a sparse file, which a crash may leave. A hole can have any
// length and contains no LF.
func (s *source) skipHole(size int64) error {
	data, err := s.file.Seek(s.scanned, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		s.scanned = size // only a hole from here
	case errors.Is(err, unix.EINVAL): // the file system doesn't report holes
	case err != nil:
		return err
	default:
		s.scanned = max(s.scanned, min(data, size))
	}
	return nil
}

// longLine makes the line between the cursor and text's end. It reads the line once more
// for its outline. The next line starts at end.
func (s *source) longLine(text, end int64, last bool, maxLine int64) (piece, error) {
	c := s.cursor
	keep, err := s.bytes(c.Offset, min(keepOfLong, text-c.Offset))
	if err != nil {
		return piece{}, err
	}
	bom := markLen(keep, c.Offset)
	start := c.Offset + int64(bom)
	if hole, err := s.endOfHole(start, text); err != nil {
		return piece{}, err
	} else if start < hole && hole < text {
		next, err := s.movedTo(hole)
		return s.piece([]Line{holeLine(start, hole-start, maxLine)}, next, false), err
	}
	next, err := s.movedTo(end)
	if err != nil {
		return piece{}, err
	}
	long, err := envelope.ReadLong(io.NewSectionReader(s.file, start, text-start), text-start)
	if err != nil {
		return piece{}, err
	}
	line := Line{
		Offset: c.Offset, End: end, Raw: keep[bom:], Length: long.Length,
		TooLong: true, Outline: long.Outline, SHA256: long.SHA256, Unterminated: end == text,
	}
	return s.piece([]Line{line}, next, last), nil
}

// unterminatedLine reads the end of a nameless file without a newline: no later look would
// read it.
func (s *source) unterminatedLine(opts TailOptions) (piece, error) {
	s.final = false
	c, end := s.cursor, s.scanned
	if end-c.Offset > opts.MaxLine+lineEndBytes {
		return s.longLine(end, end, true, opts.MaxLine)
	}
	start := c.Offset - c.block()
	read, err := s.bytes(start, end-start)
	if err != nil {
		return piece{}, err
	}
	next := c.at(end, headOf(read, start), read[max(0, len(read)-blockLen):])
	line := cut(read[c.Offset-start:], c.Offset, opts.MaxLine)
	if blank(line.Raw) {
		return s.piece(nil, next, true), nil
	}
	line.End, line.Unterminated = end, true
	return s.piece([]Line{line}, next, true), nil
}

// skipToEnd moves the cursor after the last newline.
func (s *source) skipToEnd(size int64) error {
	s.fromEnd = false
	end := size
	for end > 0 {
		start := max(0, end-scanChunk)
		text, err := s.bytes(start, end-start)
		if err != nil {
			return err
		}
		if at := bytes.LastIndexByte(text, '\n'); at >= 0 {
			end = start + int64(at) + 1
			break
		}
		end = start
	}
	next, err := s.movedTo(end)
	if err != nil {
		return err
	}
	s.cursor = next
	return nil
}

// movedTo returns the cursor moved to an offset, with blocks read from the file.
func (s *source) movedTo(offset int64) (Cursor, error) {
	if offset == 0 {
		return s.cursor, nil
	}
	block := min(offset, blockLen)
	tail, err := s.bytes(offset-block, block)
	if err != nil {
		return Cursor{}, err
	}
	head, err := s.bytes(0, block)
	return s.cursor.at(offset, head, tail), err
}
