package mailbox

import (
	"bytes"
	"crypto/sha256"
)

// blockLen is how many bytes at each end of what was read are remembered by
// their hash. They are how a file is known again.
const blockLen = 4096

// A Cursor remembers how far one file was read. It is written down together
// with what the lines before it came to, so the two cannot disagree. The zero
// value is no cursor.
type Cursor struct {
	Path       string // slash-separated, relative to the root: "tasks/x.jsonl"
	Dev, Inode uint64 // which file that was
	Offset     int64  // everything before it has been read
	Replay     int64  // lines before it may have been read before: in a file that this one replaced or was copied from, or in this one
	Head, Tail []byte // SHA-256 of the first and of the last block before Offset; nil at 0
}

// equal reports whether two cursors say the same.
func (c Cursor) equal(d Cursor) bool {
	return c.Path == d.Path && c.Dev == d.Dev && c.Inode == d.Inode && c.Offset == d.Offset &&
		c.Replay == d.Replay && bytes.Equal(c.Head, d.Head) && bytes.Equal(c.Tail, d.Tail)
}

// block is how many bytes Head and Tail each stand for.
func (c Cursor) block() int64 { return min(c.Offset, blockLen) }

// at returns the cursor moved on to offset. Tail is the last block before it;
// head is the first block of the file, or nil to keep the one that is known.
func (c Cursor) at(offset int64, head, tail []byte) Cursor {
	c.Offset = offset
	if head != nil || c.Head == nil {
		c.Head = hash(head)
	}
	c.Tail = hash(tail)
	return c
}

// anew returns the cursor of the same file at its start, where everything up
// to size is a repetition.
func (c Cursor) anew(size int64) Cursor {
	return Cursor{Path: c.Path, Dev: c.Dev, Inode: c.Inode, Replay: size}
}

func hash(block []byte) []byte {
	sum := sha256.Sum256(block)
	return sum[:]
}
