package mailbox

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// A crash may leave a hole in a file: NUL bytes where a line was never written, followed by
// the line of the next writer. If both together exceed the limit of a line, the hole
// becomes a line of its own, so that the other line isn't too long.

// keepOfHole limits the kept part of a hole that is too long for a line.
const keepOfHole = 4 << 10

// nuls returns the number of leading NUL bytes.
func nuls(text []byte) int { return len(text) - len(bytes.TrimLeft(text, "\x00")) }

// holeLine makes a line of length NUL bytes, without a line ending.
func holeLine(offset, length, maxLine int64) Line {
	keep := length
	if length > maxLine {
		keep = min(length, keepOfHole)
	}
	return Line{Offset: offset, End: offset + length, Raw: make([]byte, keep), Length: length, TooLong: length > maxLine}
}

// cutHole makes a line of the hole at the start of a too long line, and returns the rest.
func cutHole(text []byte, offset, maxLine int64) (hole Line, rest []byte, ok bool) {
	bom := markLen(text, offset)
	n, length := nuls(text[bom:]), len(bytes.TrimSuffix(text[bom:], []byte("\r")))
	if int64(length) <= maxLine || n == 0 || n == length {
		return Line{}, text, false
	}
	return holeLine(offset+int64(bom), int64(n), maxLine), text[bom+n:], true
}

// endOfHole returns the end of the NUL bytes at an offset, at most end. It holds no more
// than a chunk of them.
func (s *source) endOfHole(from, end int64) (int64, error) {
	for at := from; at < end; {
		if data, err := s.file.Seek(at, unix.SEEK_DATA); err == nil {
			at = min(max(at, data), end) // if the file system reports holes
		}
		text, err := s.bytes(at, min(scanChunk, end-at))
		if err != nil {
			return 0, err
		}
		n := nuls(text)
		at += int64(n)
		if n < len(text) || len(text) == 0 {
			return at, nil
		}
	}
	return end, nil
}
