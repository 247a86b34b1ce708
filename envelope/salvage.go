package envelope

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Salvage returns the task_id of a text that is no envelope, perhaps not even JSON or only the
// head of a line, so that its sender gets an answer. It returns "" if there is no safe id or
// more than one. It reads only names of the outermost object and never repairs the text.
func Salvage(raw []byte) ID {
	id, err := ParseID(Scrap(raw, "task_id"))
	if err != nil {
		return ""
	}
	return id
}

// Scrap returns the value under a name in the outermost object of such a text; "" if there is
// none, if it is no string or integer, or if two values differ.
func Scrap(raw []byte, name string) string {
	text, _ := scrap(raw, name)
	return text
}

// ScrapString is Scrap for the name of a participant: an integer names no participant, so the
// answer has no recipient.
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
		return "", false // before the outermost object
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

// A lexer cuts a text into strings, brackets and the text between them. It knows no grammar, so
// nothing is an error.
type lexer struct {
	rest  []byte
	depth int // number of open brackets
}

// next returns the next token, without white space before it unless the text
// ends.
func (l *lexer) next() []byte {
	trimmed := bytes.TrimLeft(l.rest, space)
	if len(trimmed) == 0 {
		return l.take(len(l.rest)) // in one step: byte by byte, a long end takes seconds
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

// word returns the string or integer that comes next, unless it is cut off, and whether it is a
// string.
func (l *lexer) word() (text string, isString bool) {
	if len(l.rest) == 0 {
		return "", false
	}
	token := l.next()
	if token[0] == '"' {
		return unquote(token), true
	}
	if len(l.rest) == 0 || !integer(string(token)) {
		return "", false // more digits may have been cut off
	}
	return string(token), false
}

// stringEnd returns the length of the string literal at the start of text; all of text if it is
// cut off.
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

// unquote returns the text of a string literal; "" if it is broken.
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

// integer reports whether a number is written as an integer.
func integer(literal string) bool {
	digits := strings.TrimPrefix(literal, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}
