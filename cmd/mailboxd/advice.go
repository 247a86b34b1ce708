package main

import (
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/term"
)

// advise spells a command about a task, to be copied into a shell: whatever a
// requester chose as its id is one word of it, and no flag.
func advise(verb string, id envelope.ID, flags ...string) string {
	words, name := []string{"mailboxd", verb}, term.ShellWord(string(id))
	if strings.HasPrefix(string(id), "-") {
		words = append(append(words, flags...), "--", name)
	} else {
		words = append(append(words, name), flags...)
	}
	return strings.Join(words, " ")
}
