package view

import (
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/cli/term"
)

// Command formats a command about a task for a shell. The id is always one word, and
// never a flag.
func Command(verb string, id envelope.ID, flags ...string) string {
	words, name := []string{"mailboxd", verb}, term.ShellWord(string(id))
	if strings.HasPrefix(string(id), "-") {
		words = append(append(words, flags...), "--", name)
	} else {
		words = append(append(words, name), flags...)
	}
	return strings.Join(words, " ")
}

// AskFurther is the command that asks on in the session of a task.
func AskFurther(id envelope.ID) string {
	name := " " + term.ShellWord(string(id))
	if strings.HasPrefix(string(id), "-") {
		name = "=" + term.ShellWord(string(id))
	}
	return "mailboxd ask --continue" + name + ` "..."`
}

// IsPlainID reports whether an id needs no quoting in a command line, and is no flag.
func IsPlainID(id envelope.ID) bool {
	return term.ShellWord(string(id)) == string(id) && !strings.HasPrefix(string(id), "-")
}
