package envelope

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is the deepest nesting of an envelope. Python fails near 1000.
const maxDepth = 128

// A check reads the fields of a document and collects findings. Its methods return the zero
// value for a wrong value.
type check struct {
	*document
	findings Findings
}

// parse reads raw. It reports false if no part of raw is reliable: raw is not JSON, not an
// object, or has a duplicate name.
func (c *check) parse(raw []byte) bool {
	if at := invalidUTF8(raw); at >= 0 {
		c.note(InvalidJSON, "", fmt.Sprintf("is not UTF-8 text (byte %d)%s", at, hint(raw)))
		return false
	}
	end, err := c.scan(raw, 0, maxDepth)
	if err == nil && len(trim(raw[end:])) > 0 {
		err = &syntaxError{at: end, what: "goes on after its end"}
	}
	switch {
	case err != nil:
		c.notJSON(err)
		return false
	case c.kind(0) != '{':
		c.note(InvalidEnvelope, "", "must be a JSON object")
		return false
	}
	return true
}

func (c *check) notJSON(err *syntaxError) {
	kind := InvalidJSON
	if err.tooDeep {
		kind = InvalidEnvelope
	}
	field := ""
	if len(c.nodes) > 0 {
		field = c.path(len(c.nodes) - 1)
	}
	c.note(kind, field, fmt.Sprintf("%s (byte %d)%s", err.in(c.raw), err.at, hint(c.raw)))
}

// repeated refuses every duplicate name: readers differ in which of the values they use.
func (c *check) repeated() bool {
	slices.Sort(c.duplicates)
	const most = 10
	for _, name := range c.duplicates[:min(most, len(c.duplicates))] {
		c.refuse(name, "appears more than once")
	}
	return len(c.duplicates) > 0
}

func (c *check) note(kind Kind, field, message string) {
	c.findings = append(c.findings, Finding{Kind: kind, Field: field, Message: message})
}

// refuse adds a finding that refuses the envelope because of a node.
func (c *check) refuse(at int, message string) { c.note(InvalidEnvelope, c.path(at), message) }

// warn adds a warning: the envelope is taken, although not as its sender wrote it.
func (c *check) warn(at int, message string) { c.note("", c.path(at), message) }

// tolerate warns about a value that AINL's own validator refuses.
func (c *check) tolerate(at int, message string) {
	c.warn(at, message)
	c.findings[len(c.findings)-1].Upstream = true
}

// missing refuses an object that lacks a required member.
func (c *check) missing(object int, name string) {
	c.note(InvalidEnvelope, join(c.path(object), name), "required")
}

// required returns a member, and refuses the envelope if it is absent or null.
func (c *check) required(object int, name string) int {
	at := c.member(object, name)
	if at == none {
		c.missing(object, name)
	}
	return at
}

// is reports whether a node has the kind. It refuses another kind, but not none.
func (c *check) is(at int, kind byte) bool {
	if at == none {
		return false
	}
	if c.kind(at) == kind {
		return true
	}
	c.refuse(at, "must be "+kindNames[kind])
	return false
}

var kindNames = map[byte]string{'{': "an object", '[': "a list", '"': "a string"}

// prose returns a string for people. Any text is allowed.
func (c *check) prose(at int) string {
	if !c.is(at, '"') {
		return ""
	}
	text, _ := c.text(at)
	return text
}

// name returns a string that names something. It is compared, logged, or put into a path, so it
// must not be empty and must not have hidden characters.
func (c *check) name(at int) string {
	if !c.is(at, '"') {
		return ""
	}
	text, ok := c.text(at)
	switch {
	case !ok:
		c.refuse(at, "contains half of a surrogate pair")
	case text == "":
		c.refuse(at, "must not be empty")
	case strings.ContainsFunc(text, hidden):
		c.refuse(at, "contains a control or invisible character")
	default:
		return text
	}
	return ""
}

// names returns a list of names; nil if the value is no list.
func (c *check) names(at int) []string {
	if !c.is(at, '[') {
		return nil
	}
	list := []string{}
	for _, item := range c.items(at) {
		list = append(list, c.name(item))
	}
	return list
}

// amount returns a whole number, 0 or more; nil for any other value. It reads the digits: a
// float would round the number (row 5).
func (c *check) amount(at int) *int64 {
	if at == none {
		return nil
	}
	n, ok := c.whole(at)
	if !ok {
		c.refuse(at, "must be a whole number, 0 or more")
		return nil
	}
	return &n
}

func (c *check) whole(at int) (int64, bool) {
	if c.kind(at) != '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(c.value(at)), 10, 63)
	return int64(n), err == nil
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(raw []byte) int {
	if utf8.Valid(raw) {
		return -1
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(raw[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}

// hint guesses why a text is not JSON.
func hint(raw []byte) string {
	text := string(raw[:min(len(raw), 64)])
	switch {
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"),
		strings.Contains(text, "{\x00"), strings.Contains(text, "\x00{"), strings.Contains(text, "\x00\""):
		return ": it looks like UTF-16, write UTF-8"
	case strings.HasPrefix(text, "\ufeff"):
		return ": a byte order mark may stand at the start of a file only"
	case strings.HasPrefix(text, "\x00"):
		return ": it looks like the hole that a crash leaves in a file"
	}
	return ""
}
