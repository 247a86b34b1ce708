package envelope

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Salvage returns the task_id of a text that is not an envelope, perhaps not
// even JSON or only the head of a line, so that its sender can be answered. It
// returns "" when there is no safe id or more than one. It looks at names of
// the outermost object only and never repairs what it finds.
func Salvage(raw []byte) ID {
	id, err := ParseID(Scrap(raw, "task_id"))
	if err != nil {
		return ""
	}
	return id
}

// Scrap returns what the outermost object of such a text says under a name, ""
// when it says nothing, no string or integer, or two different things.
func Scrap(raw []byte, name string) string {
	text, _ := scrap(raw, name)
	return text
}

// ScrapString is Scrap for a member that names a participant: an integer names
// nobody, so there is nobody to answer.
func ScrapString(raw []byte, name string) string {
	text, isString := scrap(raw, name)
	if !isString {
		return ""
	}
	return text
}

func scrap(raw []byte, name string) (text string, isString bool) {
	raw = bytes.TrimLeft(raw, "\x00"+space)
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	if len(raw) == 0 || raw[0] != '{' {
		return "", false // the outermost object is not at hand
	}
	l := lexer{rest: raw}
	found := ""
	for before := byte(0); len(l.rest) > 0; {
		depth := l.depth
		token := l.next()
		isName := depth == 1 && (before == '{' || before == ',') && unquote(token) == name
		before = token[0]
		if !isName || !l.skip(':') {
			continue
		}
		before = ':'
		word, quoted := l.word()
		if word == "" || found != "" && found != word {
			return "", false
		}
		found, isString = word, quoted
	}
	return found, isString
}

// A lexer cuts a text into strings, brackets and whatever is between them. It
// knows no grammar, so nothing it meets is an error.
type lexer struct {
	rest  []byte
	depth int // of brackets that are open
}

// next returns the next token, without white space before it unless the text
// ends.
func (l *lexer) next() []byte {
	trimmed := bytes.TrimLeft(l.rest, space)
	if len(trimmed) == 0 {
		return l.take(len(l.rest)) // at once: byte by byte, a long end takes seconds
	}
	l.rest = trimmed
	switch l.rest[0] {
	case '"':
		return l.take(stringEnd(l.rest))
	case '{', '[':
		l.depth++
	case '}', ']':
		l.depth--
	case ',', ':':
	default:
		end := bytes.IndexAny(l.rest, space+"\"{}[],:")
		if end < 0 {
			end = len(l.rest)
		}
		return l.take(max(end, 1))
	}
	return l.take(1)
}

func (l *lexer) take(n int) []byte {
	token := l.rest[:n]
	l.rest = l.rest[n:]
	return token
}

func (l *lexer) skip(c byte) bool {
	rest := bytes.TrimLeft(l.rest, space)
	if len(rest) == 0 || rest[0] != c {
		return false
	}
	l.rest = rest[1:]
	return true
}

// word returns the string or integer that comes next, if it is not cut off, and
// whether it is a string.
func (l *lexer) word() (text string, isString bool) {
	if len(l.rest) == 0 {
		return "", false
	}
	token := l.next()
	if token[0] == '"' {
		return unquote(token), true
	}
	if len(l.rest) == 0 || !integer(string(token)) {
		return "", false // at the very end there may have been more digits
	}
	return string(token), false
}

// stringEnd returns the length of the string literal that text starts with,
// all of the text if it is cut off.
func stringEnd(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// unquote returns what a string literal says, "" when it is broken.
func unquote(literal []byte) string {
	if literal[0] != '"' || !utf8.Valid(literal) {
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, literal)
	if err != nil {
		return ""
	}
	return string(text)
}

// integer reports whether a number is written as one.
func integer(literal string) bool {
	digits := strings.TrimPrefix(literal, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}
