package mailbox

import (
	"bytes"
	"crypto/sha256"
)

// blockLen is the length of the first and the last block before a cursor. Their hashes
// identify a file.
const blockLen = 4096

// A Cursor is a reading position in a file. It is saved together with the outcome of the
// lines before it, so the two can't disagree. The zero value is no cursor.
type Cursor struct {
	Path       string // slash-separated, relative to the root: "tasks/x.jsonl"
	Dev, Inode uint64 // of the file
	Offset     int64  // everything before it was read
	Replay     int64  // lines before it may have been read before: in the file that this one replaced or was copied from, or in this one
	Head, Tail []byte // SHA-256 of the first and the last block before Offset; nil at 0
}

// equal reports whether two cursors are equal.
func (c Cursor) equal(d Cursor) bool {
	return c.Path == d.Path && c.Dev == d.Dev && c.Inode == d.Inode && c.Offset == d.Offset &&
		c.Replay == d.Replay && bytes.Equal(c.Head, d.Head) && bytes.Equal(c.Tail, d.Tail)
}

// block returns the length of the blocks of Head and Tail.
func (c Cursor) block() int64 { return min(c.Offset, blockLen) }

// at returns the cursor moved to offset. Tail is the last block before it; head is the
// first block of the file, or nil to keep the known one.
func (c Cursor) at(offset int64, head, tail []byte) Cursor {
	c.Offset = offset
	if head != nil || c.Head == nil {
		c.Head = hash(head)
	}
	c.Tail = hash(tail)
	return c
}

// anew returns the cursor at the start of the same file, where everything up to size is a
// repetition.
func (c Cursor) anew(size int64) Cursor {
	return Cursor{Path: c.Path, Dev: c.Dev, Inode: c.Inode, Replay: size}
}

func hash(block []byte) []byte {
	sum := sha256.Sum256(block)
	return sum[:]
}
