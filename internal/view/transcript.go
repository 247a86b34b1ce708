package view

import (
	"bytes"
	"io"
	"strings"

	"mailboxd/internal/term"
	"mailboxd/internal/transcript"
)

// A Transcript prints the output of an agent for people. It prints the events of known programs
// as a transcript, and any other output as it is.
type Transcript struct {
	screen term.Screen
	raw    io.Writer // of lines that are no events
	reader transcript.Reader
	line   []byte // an incomplete line that may be an event
	passes bool   // the current line is printed as it comes
	spoke  bool   // the last part was words of the model
}

// maxEvent limits the length of an event. A longer line is printed as it is.
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
	if !t.passes {
		t.line = append(t.line, part...)
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

// Close prints what Write kept back. It doesn't close the writer.
func (t *Transcript) Close() error {
	err := t.print(t.reader.Rest())
	if err == nil && len(t.line) > 0 {
		_, err = t.raw.Write(t.line)
		t.line = nil
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
