package main

import (
	"strings"
	"unicode"

	"mailboxd/envelope"
)

// advise spells a command about a task, to be copied into a shell: whatever a
// requester chose as its id is one word of it, and no flag.
func advise(verb string, id envelope.ID, flags ...string) string {
	words, name := []string{"mailboxd", verb}, shellWord(string(id))
	if strings.HasPrefix(string(id), "-") {
		words = append(append(words, flags...), "--", name)
	} else {
		words = append(append(words, name), flags...)
	}
	return strings.Join(words, " ")
}

// shellWord spells a text so that a shell reads it as one word, and nothing else
// into it.
func shellWord(text string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("%+,-./:@_", r)
	}
	if text != "" && !strings.ContainsFunc(text, odd) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
