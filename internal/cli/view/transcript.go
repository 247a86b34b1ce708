package view

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/running/transcript"
)

// A Transcript prints the output of an agent for people. It prints the events of known programs
// as a transcript, and any other output as it is.
type Transcript struct {
	screen  term.Screen
	raw     io.Writer // of lines that are no events
	reader  transcript.Reader
	line    []byte // an incomplete line that may be an event
	passes  bool   // the current line is printed as it comes
	skips   bool   // the current line is an event that is too long, and not printed
	hidden  int    // events that were not printed, beside those that the reader doesn't know
	counted int    // of all of them, those that Close has named
	spoke   bool   // the last part was words of the model
}

// maxEvent limits the length of an event. A longer line of a known program is not printed, and
// one of another agent is printed as it is.
const maxEvent = 8 << 20

// NewTranscript returns a Transcript that prints to a writer.
func NewTranscript(to io.Writer) *Transcript {
	t := &Transcript{screen: term.ScreenOf(to), raw: to}
	if term.IsTerminal(to) {
		t.raw = term.NewSanitizer(to)
	}
	return t
}

// Write prints the lines of an output. It keeps back an incomplete line that may be an event.
func (t *Transcript) Write(output []byte) (int, error) {
	for rest := output; len(rest) > 0; {
		part, whole := rest, false
		if at := bytes.IndexByte(rest, '\n'); at >= 0 {
			part, whole = rest[:at+1], true
		}
		rest = rest[len(part):]
		if err := t.write(part, whole); err != nil {
			return 0, err
		}
	}
	return len(output), nil
}

// write prints a part of a line, which may be its end.
func (t *Transcript) write(part []byte, whole bool) error {
	if t.skips {
		t.skips = !whole
		return nil
	}
	if !t.passes {
		t.line = append(t.line, part...)
		if len(t.line) > maxEvent && t.isEvent() {
			t.line, t.skips, t.hidden = nil, !whole, t.hidden+1
			return nil
		}
		begin := bytes.TrimLeft(t.line, " \t")
		if len(begin) > 0 && begin[0] != '{' || len(t.line) > maxEvent {
			if err := t.print(t.reader.Rest()); err != nil {
				return err
			}
			part, t.line, t.passes = t.line, nil, true
		}
	}
	if t.passes {
		t.passes = !whole
		_, err := t.raw.Write(part)
		return err
	}
	if !whole {
		return nil
	}
	line := t.line
	t.line = nil
	return t.print(t.reader.Read(bytes.TrimSuffix(line, []byte("\n"))))
}

// isEvent reports whether the current line is an event of a known program.
func (t *Transcript) isEvent() bool {
	return t.reader.Session().Program != "" && bytes.HasPrefix(bytes.TrimLeft(t.line, " \t"), []byte("{"))
}

// Close prints what Write kept back, and how many events were not printed. It doesn't close the
// writer.
func (t *Transcript) Close() error {
	err := t.print(t.reader.Rest())
	if len(t.line) > 0 && t.isEvent() {
		t.line, t.hidden = nil, t.hidden+1
	}
	if err == nil && len(t.line) > 0 {
		_, err = t.raw.Write(t.line)
		t.line = nil
	}
	if n := t.hidden + t.reader.Hidden() - t.counted; err == nil && n > 0 {
		t.counted += n
		err = t.put(term.Faint, fmt.Sprintf("  %s not shown; --raw prints them", count(n, "event")))
	}
	return err
}

func (t *Transcript) print(parts []transcript.Line) error {
	for _, part := range parts {
		text, err := term.Escape(part.Text), error(nil)
		switch part.Kind {
		case transcript.Raw:
			_, err = io.WriteString(t.raw, part.Text+"\n")
		case transcript.Text:
			err = t.say(part.Text)
		case transcript.Tool:
			err = t.put(term.Cyan, "  "+term.OneLine(text))
		case transcript.Failure:
			err = t.put(term.Red, "  "+term.OneLine(text))
		case transcript.Notice:
			err = t.put(term.Yellow, "  "+term.OneLine(text))
		case transcript.End:
			err = t.put(term.Faint, "\n"+text)
		}
		if err != nil {
			return err
		}
		t.spoke = part.Kind == transcript.Text
	}
	return nil
}

// say prints words of the model, each line of them wrapped.
func (t *Transcript) say(words string) error {
	if t.spoke {
		words = "\n" + words
	}
	for line := range strings.SplitSeq(words, "\n") {
		line = term.Escape(strings.TrimRight(line, " \t\r"))
		if t.screen.Columns > 0 {
			line = term.Wrap(line, t.screen.Columns)
		}
		if _, err := io.WriteString(t.screen, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// put prints a line, cut to the screen.
func (t *Transcript) put(paint term.Paint, line string) error {
	_, err := io.WriteString(t.screen, t.screen.Paint(paint, term.Cut(line, t.screen.Columns))+"\n")
	return err
}
