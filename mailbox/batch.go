package mailbox

import "mailboxd/envelope"

// A Line is one line of a task file. Raw shares its memory with the other
// lines of its Batch and is never written again.
type Line struct {
	File         string // slash-separated, relative to the root
	Offset, End  int64  // bytes [Offset, End) of the file, line ending included
	Raw          []byte // without LF, without one CR before it, without a BOM at offset 0
	Length       int64  // bytes of the line without its ending, also when Raw is cut
	TooLong      bool   // longer than MaxLine: Raw is only the first 64 KiB
	Outline      []byte // of a line that is TooLong: see envelope.LongLine
	SHA256       string // of a line that is TooLong: see envelope.LongLine
	Replayed     bool   // may have been read before: see Cursor.Replay
	Unterminated bool   // the last words of a file that was replaced or removed
}

// Long is what is kept of a line that is TooLong.
func (l Line) Long() envelope.LongLine {
	return envelope.LongLine{Head: l.Raw, Length: l.Length, Outline: l.Outline, SHA256: l.SHA256}
}

// A Batch is some lines of one file, and the Cursor to write down with them.
// There may be a cursor and no lines: blank lines, a renamed file, and a file that is
// not there any more, of which the cursor names no inode.
type Batch struct {
	Lines  []Line
	Cursor Cursor
	More   []Cursor // those of other files, to be written down too; only without lines
	Gone   bool     // the file is not there any more, and what stood behind the cursor, if anything, was not read
}

// Empty reports that there is nothing to write down: no more for now.
func (b Batch) Empty() bool { return b.Cursor.Path == "" }
