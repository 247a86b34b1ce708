package index

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// rowKind begins the kind of an event of the journal that has a row, such as row.tasks.
const rowKind = "row."

// Kind is the kind of the event that has the change.
func (c Change) Kind() string { return kinds[c.of] }

var kinds = func() (list [tableCount]string) {
	for i, d := range definitions {
		list[i] = rowKind + d.name
	}
	return list
}()

// AppendJSON appends the row as a JSON object: its columns by name, without those that are
// NULL, zero or empty, and without places.
func (c Change) AppendJSON(b []byte) []byte {
	d := &definitions[c.of]
	b = append(b, '{')
	for i, v := range c.values {
		column := &d.columns[i]
		if v.kind == null || column.place || !column.nullable && i >= d.keys && v.number == 0 && v.text == "" {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), column.name...), '"', ':')
		switch v.kind {
		case number:
			b = strconv.AppendInt(b, v.number, 10)
		case text:
			b, _ = jsontext.AppendQuote(b, v.text) // bytes that are not UTF-8 are replaced
		case blob:
			b = append(base64.StdEncoding.AppendEncode(append(b, '"'), []byte(v.text)), '"')
		}
	}
	if c.gone() {
		b = append(b, `,"gone":true`...)
	}
	return append(b, '}')
}

// ParseChange reads the data of an event with a row. Places are those of its bodies. It
// reports false for another kind of event.
func ParseChange(kind string, data []byte, bodies func(name string) (Place, bool)) (c Change, ok bool, err error) {
	name, ok := strings.CutPrefix(kind, rowKind)
	if !ok {
		return Change{}, false, nil
	}
	for of := range definitions {
		if definitions[of].name == name {
			c, err = parseRow(table(of), data, bodies)
			return c, true, err
		}
	}
	return Change{}, true, fmt.Errorf("read row: no table is named %q", name)
}

func parseRow(of table, data []byte, bodies func(name string) (Place, bool)) (Change, error) {
	d := &definitions[of]
	c := Change{of: of, values: make([]value, len(d.columns))}
	for i, column := range d.columns {
		if !column.nullable {
			c.values[i].kind = column.kind
		}
		if p, ok := bodies(column.name); column.place && ok {
			c.values[i] = place(p)
		}
	}
	gone := false
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true)) // a buffer is not copied
	if _, err := dec.ReadToken(); err != nil {
		return c, fmt.Errorf("read row of %s: %w", d.name, err)
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return c, fmt.Errorf("read row of %s: %w", d.name, err)
		}
		own := name.String()
		token, err := dec.ReadToken()
		if err != nil {
			return c, fmt.Errorf("read row of %s: %s: %w", d.name, own, err)
		}
		if gone = gone || own == "gone"; own == "gone" {
			continue
		}
		if err := d.set(c.values, own, token); err != nil {
			return c, fmt.Errorf("read row of %s: %w", d.name, err)
		}
	}
	if gone {
		c.values = c.values[:d.keys]
	}
	return c, nil
}

// set sets the column of a name.
func (d *definition) set(values []value, name string, token jsontext.Token) error {
	for i, column := range d.columns {
		if column.name != name || column.place {
			continue
		}
		switch column.kind {
		case number:
			n, err := strconv.ParseInt(token.String(), 10, 64)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			values[i] = value{kind: number, number: n}
		case text:
			values[i] = value{kind: text, text: token.String()}
		case blob:
			b, err := base64.StdEncoding.DecodeString(token.String())
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			values[i] = value{kind: blob, text: string(b)}
		}
		return nil
	}
	return fmt.Errorf("no column is named %q", name)
}
