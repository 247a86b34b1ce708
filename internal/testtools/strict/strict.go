// Package strict holds a line, and a whole inbox, against the protocol that it is said in, as
// somebody would who has read nothing but that protocol. Tests use it on every
// line that we write. It knows nothing of our own reading and writing, so that
// both cannot be wrong in the same way.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Line holds a line to the protocol whose mark it bears: the version of CLowl
// or of Clutch, or the sender of CAP. One of AINL's bears none, and has to be an object that names
// a task.
func Line(line []byte) error {
	o, err := parse(line)
	switch {
	case err != nil:
		return err
	case o["clowl"] != nil:
		return CLowl(line)
	case strings.HasPrefix(string(o["v"]), `"clutch/`):
		return Clutch(line)
	case o["sender_id"] != nil:
		return CAP(line)
	}
	_, err = o.text("task_id", true)
	return err
}

// An object is a JSON object that says nothing twice.
type object map[string]json.RawMessage

// parse reads one line that is one JSON object and nothing else.
func parse(line []byte) (object, error) {
	if bytes.ContainsAny(line, "\r\n") {
		return nil, errors.New("is not one line")
	}
	return members("", line)
}

// members takes an object apart.
func members(where string, raw json.RawMessage) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, fmt.Errorf("%s must be an object", where)
	}
	o := object{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", where, err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("%s.%v: %w", where, name, err)
		}
		if _, twice := o[name.(string)]; twice {
			return nil, fmt.Errorf("%s.%v appears twice", where, name)
		}
		o[name.(string)] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s goes on after its end", where)
	}
	return o, nil
}

// only wants no members but these.
func (o object) only(where string, names ...string) error {
	for name := range o {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%s%s is no member of the protocol", where, name)
		}
	}
	return nil
}

// text wants a string, which must be there when it is required, and must not be
// empty.
func (o object) text(name string, required bool) (string, error) {
	raw, there := o[name]
	if !there {
		if required {
			return "", fmt.Errorf("%s is missing", name)
		}
		return "", nil
	}
	s, err := str(raw)
	if err == nil && s == "" {
		err = errors.New("is empty")
	}
	if err != nil {
		return "", fmt.Errorf("%s %w", name, err)
	}
	return s, nil
}

// str wants a string; null is none.
func str(raw json.RawMessage) (s string, err error) {
	if !strings.HasPrefix(string(raw), `"`) || json.Unmarshal(raw, &s) != nil {
		return "", errors.New("must be a string")
	}
	return s, nil
}

// whole wants a number that is written as a whole one.
func whole(raw json.RawMessage) error {
	if digits := strings.TrimPrefix(string(raw), "-"); digits == "" || strings.Trim(digits, "0123456789") != "" {
		return errors.New("must be an integer")
	}
	return nil
}

func boolean(raw json.RawMessage) error {
	if s := string(raw); s != "true" && s != "false" {
		return errors.New("must be a boolean")
	}
	return nil
}
