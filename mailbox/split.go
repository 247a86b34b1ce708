package mailbox

import (
	"bytes"

	"mailboxd/envelope"
)

// keepOfLong limits the kept beginning of a line that is too long, for its dead letter.
const keepOfLong = 64 << 10

var byteOrderMark = []byte("\xEF\xBB\xBF")

// split cuts complete lines out of text, which is at offset in its file: at most most
// lines, without blank ones. It returns the number of bytes used. Only LF ends a line.
func split(text []byte, offset, maxLine int64, most int) (lines []Line, used int) {
	for used < len(text) && len(lines) < most {
		length := bytes.IndexByte(text[used:], '\n')
		if length < 0 {
			break
		}
		start := offset + int64(used)
		whole := text[used : used+length]
		if hole, rest, ok := cutHole(whole, start, maxLine); ok {
			lines = append(lines, hole)
			start, whole = hole.End, rest
		}
		line := cut(whole, start, maxLine)
		used += length + 1
		if !blank(line.Raw) || line.TooLong {
			line.End = offset + int64(used)
			lines = append(lines, line)
		}
	}
	return lines, used
}

// cut makes a line of text, which has no LF.
func cut(text []byte, offset, maxLine int64) Line {
	text = bytes.TrimSuffix(text[markLen(text, offset):], []byte("\r"))
	line := Line{Offset: offset, Raw: text, Length: int64(len(text))}
	if line.Length > maxLine {
		long := envelope.LongText(text)
		line.TooLong, line.Outline, line.SHA256 = true, long.Outline, long.SHA256
		line.Raw = text[:min(len(text), keepOfLong)]
	}
	line.Raw = line.Raw[:len(line.Raw):len(line.Raw)] // an append must not overwrite the next line
	return line
}

// markLen returns the length of the byte order mark of a text that begins at an offset of its
// file: only the start of a file has one.
func markLen(text []byte, offset int64) int {
	if offset == 0 && bytes.HasPrefix(text, byteOrderMark) {
		return len(byteOrderMark)
	}
	return 0
}

// blank reports whether a text has only JSON white space.
func blank(text []byte) bool { return len(bytes.Trim(text, " \t\r")) == 0 }
