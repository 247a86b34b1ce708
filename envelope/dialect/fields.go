package dialect

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// fields is a foreign object while it is read: its members and the findings. Its methods return
// the zero value for a wrong value.
type fields struct {
	path     string // the path before the name of a member in a finding
	members  map[string]jsontext.Value
	read     map[string]bool // the members that were read
	findings *envelope.Findings
}

func newFields(object jsontext.Value, path string, findings *envelope.Findings) fields {
	f := fields{path: path, read: map[string]bool{}, findings: findings}
	if object.Kind() != '{' || json.Unmarshal(object, &f.members, lenientJSON) != nil {
		f.refuse("", "must be an object")
	}
	return f
}

// note adds a finding about a member; about the object itself if name is "".
func (f fields) note(kind envelope.Kind, name, message string) {
	field := strings.TrimSuffix(f.path+name, ".")
	*f.findings = append(*f.findings, envelope.Finding{Kind: kind, Field: field, Message: message})
}

func (f fields) refuse(name, message string) { f.note(envelope.InvalidEnvelope, name, message) }

// member returns a value; nil if it is absent or null.
func (f fields) member(name string) jsontext.Value {
	f.read[name] = true
	if value := f.members[name]; value.Kind() != 'n' {
		return value
	}
	return nil
}

func (f fields) has(name string) bool { return f.member(name) != nil }

// required returns a member, and refuses the object without it.
func (f fields) required(name string) jsontext.Value {
	value := f.member(name)
	if value == nil {
		f.refuse(name, "required")
	}
	return value
}

// prose returns a string for people; "" for no value.
func (f fields) prose(name string, value jsontext.Value) string {
	text, ok := textOf(value)
	if !ok && value != nil {
		f.refuse(name, "must be a string")
	}
	return text
}

// name returns a string that names something: not empty, and without hidden characters.
func (f fields) name(name string, value jsontext.Value) string {
	text := f.prose(name, value)
	switch {
	case value.Kind() != '"':
		return ""
	case text == "":
		f.refuse(name, "must not be empty")
	case strings.ContainsRune(text, unicode.ReplacementChar):
		f.refuse(name, "is not valid text")
	case strings.ContainsFunc(text, hiddenRune):
		f.refuse(name, "contains a control or invisible character")
	default:
		return text
	}
	return ""
}

// integer returns a required whole number. It may be written 504.0.
func (f fields) integer(name string) int {
	const most = 1e9 // so that it is exact in every notation
	value := f.required(name)
	if value == nil {
		return 0
	}
	number, err := strconv.ParseFloat(string(value), 64)
	if value.Kind() != '0' || err != nil || math.Abs(number) > most || math.Trunc(number) != number {
		f.refuse(name, "must be a whole number such as 504")
		return 0
	}
	return int(number)
}

// looseTimes are forms of a time that do not name one instant.
var looseTimes = append([]string{"2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02"}, isoTimes...)

// instant returns a time (CAP-11). A time in another form, such as one without a zone or a
// number, is left out: no schema has the member. A text that is no time is refused.
func (f fields) instant(name string) time.Time {
	const example = `must be a time with a zone such as "2026-03-09T23:00:00Z"`
	value := f.member(name)
	if value == nil {
		return time.Time{}
	}
	text, _ := textOf(value)
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC()
	}
	loose := slices.ContainsFunc(looseTimes, func(layout string) bool {
		_, err := time.Parse(layout, text)
		return err == nil
	})
	if loose || value.Kind() == '0' {
		f.note("", name, example+": left out")
	} else {
		f.refuse(name, example)
	}
	return time.Time{}
}

// list returns the items of an array.
func (f fields) list(name string, value jsontext.Value) []jsontext.Value {
	var items []jsontext.Value
	if value != nil && (value.Kind() != '[' || json.Unmarshal(value, &items, lenientJSON) != nil) {
		f.refuse(name, "must be a list")
		return nil
	}
	return items
}

// names returns an array of names.
func (f fields) names(name string, value jsontext.Value) []string {
	var names []string
	for i, item := range f.list(name, value) {
		at := indexed(name, i)
		if item.Kind() != '"' {
			f.refuse(at, "must be a string")
			continue
		}
		names = append(names, f.name(at, item))
	}
	return names
}

func indexed(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }

// flag returns true or false; absent is false.
func (f fields) flag(name string) bool {
	value := f.member(name)
	if value != nil && value.Kind() != 't' && value.Kind() != 'f' {
		f.refuse(name, "must be true or false")
	}
	return value.Kind() == 't'
}

// unknown returns the members that were not read, as an object, with a warning each; nil for
// none.
func (f fields) unknown() jsontext.Value {
	others := map[string]jsontext.Value{}
	for _, name := range slices.Sorted(maps.Keys(f.members)) {
		if !f.read[name] {
			others[name] = f.members[name]
			f.note("", name, "is not a field we know")
		}
	}
	if len(others) == 0 {
		return nil
	}
	return object(others)
}
