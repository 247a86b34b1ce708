package mailbox

import "mailboxd/envelope"

// A Line is one line of a task file. Raw shares its memory with the other lines of its
// Batch and is never written again.
type Line struct {
	File         string // slash-separated, relative to the root
	Offset, End  int64  // bytes [Offset, End) of the file, with the line ending
	Raw          []byte // without LF, one CR before it, and a BOM at offset 0
	Length       int64  // of the line without its ending, in bytes; Raw may be shorter
	TooLong      bool   // longer than MaxLine: Raw is the first 64 KiB
	Outline      []byte // of a line that is TooLong: see envelope.LongLine
	SHA256       string // of a line that is TooLong: see envelope.LongLine
	Replayed     bool   // may have been read before: see Cursor.Replay
	Unterminated bool   // the rest of a replaced or removed file
}

// Long returns the kept parts of a line that is TooLong.
func (l Line) Long() envelope.LongLine {
	return envelope.LongLine{Head: l.Raw, Length: l.Length, Outline: l.Outline, SHA256: l.SHA256}
}

// A Batch holds lines of one file, and the Cursor to save with them. A cursor can come
// without lines: for blank lines, for a renamed file, and for a removed file, whose cursor
// has no inode.
type Batch struct {
	Lines  []Line
	Cursor Cursor
	More   []Cursor // cursors of other files to save; only without lines
	Gone   bool     // the file was removed, and content after the cursor was not read
}

// Empty reports that there is nothing to save: no more lines for now.
func (b Batch) Empty() bool { return b.Cursor.Path == "" }
