package envelope

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// outlined are the members that an outline keeps: they tell the dialect of the object, the
// request and its parties.
var outlined = []string{
	"schema_version", "task_id", "requester_id", "target_agent", "target_role", "task_type", // a request
	"agent_id", "status", "role_types", "id", "system_prompt", "v", // other objects
	"clowl", "cl", "mid", "cid", "tid", "pid", "p", "from", "to", "ts", // CLowl
	"sender_id", "recipient_id", "type", // CAP
}

const (
	mostRepeats  = 2       // kept members of one name: two show that it is a duplicate
	longestNoted = 4 << 10 // bytes of a kept name or value: twice the longest id, escaped
	deepestLong  = 10_000  // levels of nesting
)

// errNotJSON marks a text that is not one JSON object, or is nested too deep.
var errNotJSON = errors.New("not a JSON object")

// An outliner reads one JSON object (RFC 8259) from a stream. It holds a buffer of
// the stream, a byte for each open container, and the outline.
type outliner struct {
	in      *bufio.Reader
	open    []byte         // the brackets that close the open containers
	entered bool           // the innermost container was opened just now
	outline []byte         // the kept members, each with a comma before it
	kept    map[string]int // the number of kept members by name
	noting  bool           // whether reads are copied into note
	note    []byte         // the copy, at most one byte more than longestNoted
}

// readOutline returns the outline of the object in a stream. The error is errNotJSON, or one of
// reading.
func readOutline(r io.Reader) ([]byte, error) {
	o := outliner{in: bufio.NewReaderSize(r, 64<<10), kept: map[string]int{}}
	c, err := o.next()
	if err == nil && c != '{' {
		err = errNotJSON
	}
	for err == nil {
		if err = o.value(c); err != nil {
			break
		}
		if c, err = o.follow(); err == nil && len(o.open) == 0 {
			break
		}
	}
	if err == nil {
		if _, err = o.next(); errors.Is(err, io.EOF) {
			return append(append([]byte{'{'}, strings.TrimPrefix(string(o.outline), ",")...), '}'), nil
		}
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errNotJSON // text after the end, or an end too early
	}
	return nil, err
}

// next returns the next byte that is not white space.
func (o *outliner) next() (byte, error) {
	for {
		c, err := o.in.ReadByte()
		if err != nil || strings.IndexByte(space, c) < 0 {
			return c, err
		}
	}
}

// follow closes the containers that end here and returns the first byte of the
// next value, after its name if it has one.
func (o *outliner) follow() (c byte, err error) {
	for len(o.open) > 0 {
		first, closing := o.entered, o.open[len(o.open)-1]
		o.entered = false
		if c, err = o.next(); err != nil {
			return 0, err
		}
		if c == closing {
			o.open = o.open[:len(o.open)-1]
			continue
		}
		if !first {
			if c != ',' {
				return 0, errNotJSON
			}
			if c, err = o.next(); err != nil {
				return 0, err
			}
		}
		if closing == '}' {
			return o.member(c)
		}
		return c, nil
	}
	return 0, nil
}

// member reads the name of a member, whose first byte is c, and returns the first byte of its
// value. It notes a member of the outermost object whose name is in outlined.
func (o *outliner) member(c byte) (byte, error) {
	if c != '"' {
		return 0, errNotJSON
	}
	o.noting, o.note = len(o.open) == 1, o.note[:0]
	o.see(c)
	if err := o.text(); err != nil {
		return 0, err
	}
	colon, err := o.next()
	if err == nil && colon != ':' {
		err = errNotJSON
	}
	if err != nil {
		return 0, err
	}
	if o.noting = o.noting && o.wanted(); o.noting {
		o.outline = append(append(append(o.outline, ','), o.note...), ':')
		o.note = o.note[:0]
	}
	return o.next()
}

// wanted reports whether the outline keeps the member whose name was noted.
func (o *outliner) wanted() bool {
	if len(o.note) > longestNoted {
		return false
	}
	name := unquote(o.note)
	if !slices.Contains(outlined, name) || o.kept[name] == mostRepeats {
		return false
	}
	o.kept[name]++
	return true
}

// value reads a scalar, or the bracket that opens a container.
func (o *outliner) value(c byte) (err error) {
	o.see(c)
	switch c {
	case '{', '[':
		if len(o.open) == deepestLong {
			return errNotJSON
		}
		o.open, o.entered = append(o.open, c+2), true // '}' is '{' + 2, and ']' is '[' + 2
		if o.noting {
			o.see(c + 2)
		}
	case '"':
		err = o.text()
	case 't':
		err = o.literal("rue")
	case 'f':
		err = o.literal("alse")
	case 'n':
		err = o.literal("ull")
	default:
		err = o.number(c)
	}
	if o.noting {
		o.keep()
	}
	return err
}

// keep adds the noted value to the outline.
func (o *outliner) keep() {
	if len(o.note) > longestNoted {
		o.note = append(o.note[:0], "null"...)
	}
	o.outline, o.noting = append(o.outline, o.note...), false
}

// see notes bytes that were read, while noting is set.
func (o *outliner) see(text ...byte) {
	if o.noting {
		o.note = append(o.note, text[:min(len(text), longestNoted+1-len(o.note))]...)
	}
}

// text reads a string behind its opening quote.
func (o *outliner) text() error {
	for {
		if _, err := o.in.Peek(1); err != nil { // fills the buffer when it is empty
			return err
		}
		ahead, _ := o.in.Peek(o.in.Buffered())
		n := slices.IndexFunc(ahead, func(c byte) bool { return c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf })
		if n < 0 {
			n = len(ahead)
		}
		o.see(ahead[:n]...)
		o.in.Discard(n) // it is in the buffer
		if n == len(ahead) {
			continue
		}
		if ended, err := o.special(); ended || err != nil {
			return err
		}
	}
}

// special reads one of the special parts of a string: its end, an escape, or a character beyond
// ASCII.
func (o *outliner) special() (ended bool, err error) {
	r, size, err := o.in.ReadRune()
	switch {
	case err != nil:
		return false, err
	case r < ' ', r == utf8.RuneError && size == 1:
		return false, errNotJSON
	}
	o.see(utf8.AppendRune(nil, r)...)
	if r != '\\' {
		return r == '"', nil
	}
	c, err := o.in.ReadByte()
	if err != nil {
		return false, err
	}
	o.see(c)
	if c != 'u' {
		return false, among(c, `"\/bfnrt`)
	}
	for range 4 {
		if c, err = o.in.ReadByte(); err == nil {
			err = among(c, "0123456789abcdefABCDEF")
		}
		if err != nil {
			return false, err
		}
		o.see(c)
	}
	return false, nil
}

func among(c byte, set string) error {
	if strings.IndexByte(set, c) < 0 {
		return errNotJSON
	}
	return nil
}

// literal reads the rest of true, false or null.
func (o *outliner) literal(rest string) error {
	for _, want := range []byte(rest) {
		c, err := o.in.ReadByte()
		if err != nil {
			return err
		}
		if c != want {
			return errNotJSON
		}
		o.see(c)
	}
	return nil
}

// number reads a number whose first byte is c.
func (o *outliner) number(c byte) error {
	if c == '-' {
		var err error
		if c, err = o.in.ReadByte(); err != nil {
			return err
		}
		o.see(c)
	}
	if err := among(c, "0123456789"); err != nil {
		return err
	}
	if c != '0' {
		o.run("0123456789")
	}
	if o.one(".") && o.run("0123456789") == 0 {
		return errNotJSON
	}
	if o.one("eE") {
		o.one("+-")
		if o.run("0123456789") == 0 {
			return errNotJSON
		}
	}
	return nil
}

// run reads bytes of a set, as many as there are. An error of reading comes again
// with the next byte.
func (o *outliner) run(set string) (n int) {
	for o.one(set) {
		n = 1
	}
	return n
}

// one reads a byte of a set, if the next one is.
func (o *outliner) one(set string) bool {
	ahead, err := o.in.Peek(1)
	if err != nil || strings.IndexByte(set, ahead[0]) < 0 {
		return false
	}
	o.see(ahead[0])
	o.in.Discard(1) // it is in the buffer
	return true
}
