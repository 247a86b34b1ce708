package schema

import (
	"bytes"
	"encoding/json" // for Number alone, which the library knows
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// What a document may have to be judged. A library that looks at all of it,
// and computes with its numbers exactly, would be busy for hours otherwise:
// 1e1000000 is nine bytes of text and a million digits.
const (
	maxDepth  = 64
	maxValues = 100_000
	maxNumber = 400 // characters, and the most that an exponent may be
)

// decode reads a document into what the library works on.
func decode(text []byte) (any, error) {
	d := decoder{Decoder: jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true)), left: maxValues}
	value, err := d.value()
	if err == nil {
		if _, more := d.ReadToken(); !errors.Is(more, io.EOF) {
			err = errors.New("goes on after its end")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot be judged: %w", err)
	}
	return value, nil
}

type decoder struct {
	*jsontext.Decoder
	left int // values
}

func (d *decoder) value() (any, error) {
	if d.left--; d.left < 0 {
		return nil, fmt.Errorf("has more than %d values", maxValues)
	}
	if d.StackDepth() > maxDepth {
		return nil, fmt.Errorf("is nested more than %d deep", maxDepth)
	}
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '{':
		return d.object()
	case '[':
		return d.array()
	case '"':
		return token.String(), nil
	case '0':
		return number(token.String())
	case 't', 'f':
		return token.Bool(), nil
	}
	return nil, nil
}

func (d *decoder) object() (any, error) {
	members := map[string]any{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String() // the token ends with the next one
		if members[key], err = d.value(); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return members, err
}

func (d *decoder) array() (any, error) {
	items := []any{}
	for d.PeekKind() != ']' {
		item, err := d.value()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := d.ReadToken()
	return items, err
}

func number(text string) (json.Number, error) {
	_, exponent, scientific := strings.Cut(strings.ToLower(text), "e")
	tooLarge := len(text) > maxNumber
	if scientific && !tooLarge {
		n, err := strconv.Atoi(exponent)
		tooLarge = err != nil || n > maxNumber || n < -maxNumber
	}
	if tooLarge {
		return "", errors.New("has a number of more than 400 digits")
	}
	return json.Number(text), nil
}
