package index

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/journal"
)

// The names of bodies end so unless a body is JSON without a line break, as it is.
const (
	asString = ".string"
	asBase64 = ".base64"
)

// NewBody is a body of an event with exactly this text.
func NewBody(name string, content []byte) journal.Body {
	value := jsontext.Value(content)
	switch {
	case !bytes.ContainsAny(content, "\n\r") && value.IsValid():
		return journal.Body{Name: name, Text: content}
	case utf8.Valid(content):
		quoted, _ := jsontext.AppendQuote(nil, content)
		return journal.Body{Name: name + asString, Text: quoted}
	}
	coded := append(base64.StdEncoding.AppendEncode([]byte{'"'}, content), '"')
	return journal.Body{Name: name + asBase64, Text: coded}
}

// content is what NewBody was made of.
func content(name string, body []byte) ([]byte, error) {
	switch {
	case strings.HasSuffix(name, asString):
		return jsontext.AppendUnquote(nil, body)
	case strings.HasSuffix(name, asBase64):
		if len(body) < 2 {
			return nil, fmt.Errorf("body %s is no string", name)
		}
		return base64.StdEncoding.DecodeString(string(body[1 : len(body)-1]))
	}
	return body, nil
}

// bodyPlaces finds the places of the bodies of an event by the names of columns.
func bodyPlaces(e *journal.Event) func(column string) (Place, bool) {
	return func(column string) (Place, bool) {
		for _, b := range e.Bodies {
			if name, _, _ := strings.Cut(b.Name, "."); name == column && b.Text != nil {
				return Place{e.Place, b.Name}, true
			}
		}
		return Place{}, false
	}
}

// BodyOf returns the column of the body of a name.
func BodyOf(name string) string {
	column, _, _ := strings.Cut(name, ".")
	return column
}
