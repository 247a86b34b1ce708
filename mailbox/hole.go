package mailbox

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// A crash may leave a hole in a file: NUL bytes where a line was never written, and the
// line of the next writer behind them. When both together are longer than a line may be,
// the hole is a line of its own, so that the other is not too long because of it.

// keepOfHole is how much of a hole that is too long for a line is kept.
const keepOfHole = 4 << 10

// nuls returns how many NUL bytes a text begins with.
func nuls(text []byte) int { return len(text) - len(bytes.TrimLeft(text, "\x00")) }

// holeLine makes a line of length NUL bytes, which ends where the next one begins.
func holeLine(offset, length, maxLine int64) Line {
	keep := length
	if length > maxLine {
		keep = min(length, keepOfHole)
	}
	return Line{Offset: offset, End: offset + length, Raw: make([]byte, keep), Length: length, TooLong: length > maxLine}
}

// cutHole makes the hole that a line which is too long begins with a line of its own, and
// returns what is behind it.
func cutHole(text []byte, offset, maxLine int64) (hole Line, rest []byte, ok bool) {
	n, length := nuls(text), len(bytes.TrimSuffix(text, []byte("\r")))
	if int64(length) <= maxLine || n == 0 || n == length {
		return Line{}, text, false
	}
	return holeLine(offset, int64(n), maxLine), text[n:], true
}

// endOfHole returns where the NUL bytes end that the file has at an offset, at most at end.
// It holds no more than a chunk of them.
func (s *source) endOfHole(from, end int64) (int64, error) {
	for at := from; at < end; {
		if data, err := s.file.Seek(at, unix.SEEK_DATA); err == nil {
			at = min(max(at, data), end) // where holes are known
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
