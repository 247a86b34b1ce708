package dialect

import (
	"bytes"
	"cmp"
	"math"
)

// redacted replaces a secret.
const redacted = `"[redacted]"`

// redactRefused removes the secrets from refused pieces: from each message in them, because an
// object with the marks of two dialects, or a list, is no message of any dialect.
func redactRefused(pieces []Piece) []Piece {
	for i, p := range pieces {
		if p.Findings.Refused() {
			raw, _ := strikeWithin(p.Message.Raw, math.MaxInt, "auth", redacted)
			pieces[i].Message.Raw, pieces[i].Message.Request.Raw = raw, raw
		}
	}
	return pieces
}

// strike replaces the value under a name in an object, and returns the old value, "" for none
// that is a text. It knows no grammar, so that it also removes a secret from a broken or
// incomplete object. Without such a member it returns the text as it is.
func strike(text []byte, name, instead string) (struck []byte, secret string) {
	return strikeWithin(text, 1, name, instead)
}

// strikeWithin is strike for objects down to a depth.
func strikeWithin(text []byte, deepest int, name, instead string) (struck []byte, secret string) {
	copied := 0
	for at, depth := 0, 0; at < len(text); {
		token := tokenOf(text[at:])
		at += len(token)
		depth += nesting(token)
		if token[0] != '"' || depth > deepest || !says(token, name) {
			continue
		}
		from, to := valueAfter(text, at)
		if from == to {
			continue
		}
		if said, ok := textOf(text[from:to]); ok && string(text[from:to]) != redacted {
			secret = cmp.Or(secret, said)
		}
		struck = append(append(struck, text[copied:from]...), instead...)
		copied, at = to, to
	}
	if copied == 0 {
		return text, ""
	}
	return append(struck, text[copied:]...), secret
}

func says(literal []byte, name string) bool {
	said, ok := textOf(literal)
	return ok && said == name
}

// tokenOf returns the string, or the one byte, at the start of a text.
func tokenOf(text []byte) []byte {
	if text[0] != '"' {
		return text[:1]
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i+1]
		}
	}
	return text
}

// nesting returns the change of the depth by a token.
func nesting(token []byte) int {
	switch token[0] {
	case '{', '[':
		return 1
	case '}', ']':
		return -1
	}
	return 0
}

// valueAfter returns the bounds of the value behind the name of a member; a value that is cut
// off extends to the end. Both are equal if there is none.
func valueAfter(text []byte, at int) (from, to int) {
	blank := func(at int) int { return len(text) - len(bytes.TrimLeft(text[at:], space)) }
	if at = blank(at); at == len(text) || text[at] != ':' {
		return at, at
	}
	from = blank(at + 1)
	depth := 0
	for to = from; to < len(text); {
		token := tokenOf(text[to:])
		depth += nesting(token)
		if depth < 0 || depth == 0 && token[0] == ',' {
			return from, to
		}
		to += len(token)
		if depth == 0 && bytes.IndexByte([]byte(`"]}`), token[0]) >= 0 {
			return from, to
		}
	}
	return from, to
}
