package doctor

import (
	"fmt"
	"io"
	"strings"

	"mailboxd/internal/cli/term"
)

// Print prints the findings and counts them, or each as a line of JSON.
func Print(w io.Writer, findings []Finding, asJSON bool) error {
	if asJSON {
		for _, f := range findings {
			if err := term.PrintJSON(w, f); err != nil {
				return err
			}
		}
		return nil
	}
	s, count, width := term.ScreenOf(w), map[Grade]int{}, 0
	for _, f := range findings {
		count[f.State]++
		width = max(width, term.Width(f.name()))
	}
	for _, f := range findings {
		fmt.Fprint(s, f.text(s, width))
	}
	_, err := fmt.Fprintf(s, "\n%d ok, %d warn, %d bad\n", count[OK], count[Warn], count[Bad])
	return err
}

// leastText is how many columns the text of a finding has beside its name. With less it is
// below the name.
const leastText = 40

// text is a finding with what to do about it. On a screen long lines are wrapped, and what
// is wrapped is indented.
func (f Finding) text(s term.Screen, width int) string {
	indent := len("warn") + 2 + width + 2
	name := fmt.Sprintf("%-*s", width+2, f.name())
	if s.Columns > 0 && s.Columns < indent+leastText {
		indent = len("warn") + 2
		name = f.name() + "\n" + strings.Repeat(" ", indent)
	}
	text := s.Paint(f.State.paint(), fmt.Sprintf("%-4s", f.State)) + "  " + name + hang(s, f.Finding, indent) + "\n"
	if f.Hint != "" {
		text += strings.Repeat(" ", indent) + s.Paint(term.Bold, "->") + " " + hang(s, f.Hint, indent+len("-> ")) + "\n"
	}
	return text
}

// hang wraps a text on a screen, and indents all lines but the first.
func hang(s term.Screen, text string, indent int) string {
	if text = term.Escape(text); s.Columns > 0 {
		return term.WrapIndented(text, s.Columns, indent)
	}
	return text
}

// paint is the colour of a grade.
func (g Grade) paint() term.Paint {
	switch g {
	case OK:
		return term.Green
	case Warn:
		return term.Yellow
	}
	return term.Red
}

func (f Finding) name() string { return strings.TrimSpace(f.Check + " " + term.Escape(f.Subject)) }
