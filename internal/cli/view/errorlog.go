package view

import (
	"bytes"
	"io"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/running/transcript"
)

// An ErrorLog prints the standard error of an agent for people. It prints a line for each
// attempt of a known program to reach its provider again, without the stack of its error, and
// any other line as it is.
type ErrorLog struct {
	screen term.Screen
	raw    io.Writer // of all other lines
	reader transcript.Errors
	line   []byte // an incomplete line that the reader may change
	passes bool   // the current line is printed as it comes
}

// NewErrorLog returns an ErrorLog that prints to a writer.
func NewErrorLog(to io.Writer) *ErrorLog {
	l := &ErrorLog{screen: term.ScreenOf(to), raw: to}
	if term.IsTerminal(to) {
		l.raw = term.NewSanitizer(to)
	}
	return l
}

// Write prints the lines of an output. It keeps back an incomplete line that may become another.
func (l *ErrorLog) Write(output []byte) (int, error) {
	for rest := output; len(rest) > 0; {
		part, whole := rest, false
		if at := bytes.IndexByte(rest, '\n'); at >= 0 {
			part, whole = rest[:at+1], true
		}
		rest = rest[len(part):]
		if err := l.write(part, whole); err != nil {
			return 0, err
		}
	}
	return len(output), nil
}

func (l *ErrorLog) write(part []byte, whole bool) error {
	if !l.passes {
		l.line = append(l.line, part...)
		if len(l.line) > maxEvent || !l.reader.MayBegin(l.line) {
			part, l.line, l.passes = l.line, nil, true
		}
	}
	if l.passes {
		l.passes = !whole
		_, err := l.raw.Write(part)
		return err
	}
	if !whole {
		return nil
	}
	line := l.line
	l.line = nil
	for _, part := range l.reader.Read(bytes.TrimSuffix(line, []byte("\n"))) {
		if err := l.print(part); err != nil {
			return err
		}
	}
	return nil
}

func (l *ErrorLog) print(part transcript.Line) error {
	if part.Kind == transcript.Raw {
		_, err := io.WriteString(l.raw, part.Text+"\n")
		return err
	}
	line := "  " + term.OneLine(part.Text)
	_, err := io.WriteString(l.screen, l.screen.Paint(term.Yellow, term.Cut(line, l.screen.Columns))+"\n")
	return err
}

// Close prints what Write kept back. It doesn't close the writer.
func (l *ErrorLog) Close() error {
	_, err := l.raw.Write(l.line)
	l.line = nil
	return err
}
