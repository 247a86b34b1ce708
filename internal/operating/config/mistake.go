package config

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
)

// A Mistake is one thing that is wrong with a configuration, a file that it names, or a
// variable of the environment.
type Mistake struct {
	Effect  Effect
	File    string // "" for the environment and flags
	Line    int    // 0: unknown
	Column  int
	Key     string // "agents[0].exec.command"; "" for the whole file
	Message string
}

// An Effect is what a mistake does.
type Effect int

// The effects of mistakes, the worst first.
const (
	Refuses  Effect = iota // serve doesn't start with it
	Disables               // tasks for one agent are refused
	Lacks                  // a program, a directory or a file is missing now, and may come later
	Unset                  // an agent shall get a variable that is not set
	Warns                  // everything works
)

// String returns "config.yaml:12:7: key: message".
func (m Mistake) String() string {
	var text strings.Builder
	switch {
	case m.File == "": // the message names the variable or the flag
	case m.Line == 0:
		fmt.Fprintf(&text, "%s: ", m.File)
	default:
		fmt.Fprintf(&text, "%s:%d:%d: ", m.File, m.Line, m.Column)
	}
	if m.Effect >= Unset {
		text.WriteString("warning: ")
	}
	if m.Key != "" {
		text.WriteString(m.Key + ": ")
	}
	return text.String() + m.Message
}

// Mistakes are all mistakes of a configuration, in the order of its lines.
type Mistakes []Mistake

// Error lists the mistakes, one a line.
func (ms Mistakes) Error() string {
	if len(ms) == 1 {
		return ms[0].String()
	}
	text := fmt.Sprintf("the configuration has %d mistakes:", len(ms))
	for _, m := range ms {
		text += "\n  " + m.String()
	}
	return text
}

// Only returns the mistakes with one of the effects.
func (ms Mistakes) Only(effects ...Effect) Mistakes {
	var some Mistakes
	for _, m := range ms {
		if slices.Contains(effects, m.Effect) {
			some = append(some, m)
		}
	}
	return some
}

// Err returns the mistakes with which serve doesn't start as an error; nil without any.
func (ms Mistakes) Err() error {
	if refused := ms.Only(Refuses); len(refused) > 0 {
		return refused
	}
	return nil
}

func (ms Mistakes) sorted() Mistakes {
	slices.SortStableFunc(ms, func(a, b Mistake) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return slices.CompactFunc(ms, func(a, b Mistake) bool {
		return a.File == b.File && a.Line == b.Line && a.Column == b.Column && a.Line > 0 && a.Message == b.Message
	})
}

// A keyError is what is wrong with the value of a key.
type keyError struct{ key, message string }

func (e *keyError) Error() string { return e.key + ": " + e.message }

func wrong(key, format string, args ...any) error {
	return &keyError{key, fmt.Sprintf(format, args...)}
}

// Error returns what String returns.
func (m Mistake) Error() string { return m.String() }

// Unwrap returns the mistakes as errors.
func (ms Mistakes) Unwrap() (errs []error) {
	for _, m := range ms {
		errs = append(errs, m)
	}
	return errs
}

// An issue is a mistake in JSON.
type issue struct {
	Kind    string `json:"kind"` // error or warning
	Path    string `json:"path"`
	Line    int    `json:"line,omitzero"`
	Column  int    `json:"column,omitzero"`
	Key     string `json:"key,omitzero"`
	Message string `json:"message"`
}

// Print prints the mistakes, one a line, or as one JSON object. It returns an error with
// an exit code unless all of them are warnings.
func (ms Mistakes) Print(w io.Writer, asJSON bool) error {
	ok, issues := true, []issue{}
	for _, m := range ms {
		kind := "warning"
		if m.Effect < Unset {
			ok, kind = false, "error"
		}
		issues = append(issues, issue{kind, cmp.Or(m.File, "environment"), m.Line, m.Column, m.Key, m.Message})
		if !asJSON {
			fmt.Fprintln(w, term.Escape(m.String()))
		}
	}
	if asJSON {
		if err := term.PrintJSON(w, struct {
			OK     bool    `json:"ok"`
			Issues []issue `json:"issues"`
		}{ok, issues}); err != nil {
			return err
		}
	}
	if !ok {
		return &exit.Error{Code: exit.Failed}
	}
	return nil
}
