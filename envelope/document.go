package envelope

import (
	"iter"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// A document is one JSON value, read in a single pass. It builds no values: its nodes, in the
// order of the text, point into raw. jsontext is no replacement: after an escaped name, the
// time of an error grows with the rest of the text, and Split, which tries a line repeatedly,
// took 26 s for a hostile line of 1 MiB instead of 0.05 s.
type document struct {
	raw        []byte
	nodes      []node
	duplicates []int // name nodes that repeat an earlier name of their object

	entries []entry // buffer of contentHash for sorting
	content []byte  // buffer of contentHash for the canonical form
}

// A node is a value or the name of a member. An object is followed by its
// names and values in turn, an array by its items.
type node struct {
	start, end int32 // the node is raw[start:end]
	next       int32 // index of the node after this one and its contents; of the container while this node is open
	kind       byte  // one of { [ " 0 t f n
	escaped    bool  // a string with a backslash in it
}

// none stands for a member that is absent: node 0 is the whole document and never a member.
const none = 0

var documents = sync.Pool{New: func() any { return new(document) }}

// release returns the nodes to the pool. raw and its slices stay the caller's.
func (d *document) release() {
	const worthKeeping = 1 << 14 // so that a hostile line does not keep its memory
	if cap(d.nodes) > worthKeeping || cap(d.content) > 16*worthKeeping {
		return
	}
	d.raw = nil
	documents.Put(d)
}

func (d *document) kind(i int) byte { return d.nodes[i].kind }

// value returns the bytes of a node, without capacity beyond them.
func (d *document) value(i int) jsontext.Value {
	n := d.nodes[i]
	return d.raw[n.start:n.end:n.end]
}

// inner returns a string without its quotes, still escaped.
func (d *document) inner(i int) []byte {
	n := d.nodes[i]
	return d.raw[n.start+1 : n.end-1]
}

// text returns the decoded text of a string. ok is false if the string holds half of a
// surrogate pair, which no text can; the half becomes U+FFFD.
func (d *document) text(i int) (s string, ok bool) {
	if !d.nodes[i].escaped {
		return string(d.inner(i)), true
	}
	unquoted, err := jsontext.AppendUnquote(nil, d.value(i))
	return string(unquoted), err == nil
}

// says reports whether a string is exactly s, however it is escaped.
func (d *document) says(i int, s string) bool {
	n := &d.nodes[i]
	if !n.escaped {
		return int(n.end-n.start) == len(s)+2 && string(d.raw[n.start+1:n.end-1]) == s
	}
	text, ok := d.text(i)
	return ok && text == s
}

// members yields the name and the value node of each member of an object.
func (d *document) members(object int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for name := object + 1; name < int(d.nodes[object].next); {
			if !yield(name, name+1) {
				return
			}
			name = int(d.nodes[name+1].next)
		}
	}
}

// items yields the position and the node of each item of an array.
func (d *document) items(array int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		at := array + 1
		for position := 0; at < int(d.nodes[array].next); position++ {
			if !yield(position, at) {
				return
			}
			at = int(d.nodes[at].next)
		}
	}
}

// find returns the value of a member, null included, or none.
func (d *document) find(object int, name string) int {
	for at := object + 1; at < int(d.nodes[object].next); at = int(d.nodes[at+1].next) {
		if d.says(at, name) {
			return at + 1
		}
	}
	return none
}

// member returns the value of a member, or none when it is absent or null.
func (d *document) member(object int, name string) int {
	at := d.find(object, name)
	if at == none || d.kind(at) == 'n' {
		return none
	}
	return at
}

// path returns the path of a node as findings show it: input.refs[0].uri. It also works for an
// incomplete document, whose last nodes are open.
func (d *document) path(target int) string {
	var path string
	for at := 0; at != target; {
		isObject := d.kind(at) == '{'
		child := at + 1
		for position := 0; ; position++ {
			name := child
			if isObject {
				child = min(name+1, target)
			}
			if target < int(d.nodes[child].next) || child == target {
				path = d.step(path, name, position, isObject)
				break
			}
			child = int(d.nodes[child].next)
		}
		at = child
	}
	return path
}

func (d *document) step(path string, name, position int, isObject bool) string {
	if !isObject {
		return path + "[" + strconv.Itoa(position) + "]"
	}
	text, _ := d.text(name)
	return join(path, text)
}

// join adds a member's name to a path, quoted when it is not a plain word.
func join(path, name string) string {
	switch {
	case !plain(name):
		return path + "[" + quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

func plain(name string) bool {
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// quote returns foreign text for a message: shortened, and without characters that a terminal
// acts on.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
