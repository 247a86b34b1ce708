package envelope

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// MostStreamed is the length, in bytes, of the longest line that ReadLong reads.
const MostStreamed = 64 << 20

// A LongLine has the known facts of a line that is longer than the limit of intake. The zero
// value is a line of which nothing is known.
type LongLine struct {
	Head   []byte // its first bytes
	Length int64  // of the whole line, in bytes

	// Outline has those members of the line's object that name the request and its parties, as
	// an object. Long values and containers are empty there. It is nil if the line is longer
	// than MostStreamed or is not one JSON object (RFC 8259): then the line has no readable
	// task id.
	Outline []byte
	SHA256  string // of the whole line, hex; "" if it is longer than MostStreamed
}

// ReadLong reads a line of that many bytes, without its line feed, and sets all fields of a
// LongLine except Head. Its memory does not grow with the line. An error is one of reading:
// io.ErrUnexpectedEOF if there are fewer bytes.
func ReadLong(line io.Reader, length int64) (LongLine, error) {
	long := LongLine{Length: length}
	if length > MostStreamed {
		return long, nil
	}
	sum, counted := sha256.New(), &counter{from: line}
	line = io.TeeReader(counted, sum)
	outline, err := readOutline(line)
	if errors.Is(err, errNotJSON) {
		_, err = io.Copy(io.Discard, line) // for the hash
	}
	if err == nil && counted.bytes < length {
		err = io.ErrUnexpectedEOF
	}
	long.Outline, long.SHA256 = outline, hex.EncodeToString(sum.Sum(nil))
	return long, err
}

// A counter counts the bytes that pass through it.
type counter struct {
	from  io.Reader
	bytes int64
}

func (c *counter) Read(p []byte) (n int, err error) {
	n, err = c.from.Read(p)
	c.bytes += int64(n)
	return n, err
}

// LongText returns the LongLine of a line in memory; its Head is all of it.
func LongText(line []byte) LongLine {
	long, err := ReadLong(bytes.NewReader(line), int64(len(line)))
	if err != nil {
		panic("read from memory: " + err.Error())
	}
	long.Head = line
	return long
}

// Finding refuses the line because it is longer than limit, in bytes.
func (l LongLine) Finding(limit int64) Finding {
	return Finding{Kind: InvalidEnvelope, Message: fmt.Sprintf("the line is %d bytes long, more than %d", l.Length, limit)}
}

// Hash names the content of the line: the SHA-256 of all of it, or of its head if the rest was
// not read.
func (l LongLine) Hash() string {
	if l.SHA256 == "" {
		return hash(l.Head)
	}
	return l.SHA256
}
