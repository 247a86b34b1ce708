package envelope

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// contentHash names what a document says: the order of members, white space
// and the way strings are escaped do not count, numbers count as they are
// written (AINL-55). It fills d.duplicates on its way, because it is the one
// place that sees each object's names side by side.
func (d *document) contentHash() string {
	d.content = d.canonical(d.content[:0], 0)
	return hash(d.content)
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], sum[:])
	return string(digits[:]) // one allocation where hex.EncodeToString makes two
}

// canonical appends a node so that two different values never yield the same
// bytes: every value says what it is, and every string and number how long it
// is. It calls itself at most as deep as scan let the document go.
func (d *document) canonical(dst []byte, at int) []byte {
	switch kind := d.kind(at); kind {
	case '{':
		return d.canonicalObject(dst, at)
	case '[':
		dst = append(dst, '[')
		for _, item := range d.items(at) {
			dst = d.canonical(dst, item)
		}
		return append(dst, ']')
	case '"':
		key, tag := d.key(at)
		return token(dst, tag, key)
	case '0':
		return token(dst, kind, d.value(at))
	default: // true, false, null
		return append(dst, kind)
	}
}

func token(dst []byte, tag byte, text []byte) []byte {
	dst = binary.AppendUvarint(append(dst, tag), uint64(len(text)))
	return append(dst, text...)
}

// An entry is a member on its way to its place in the canonical form.
type entry struct {
	key  []byte
	tag  byte
	name int
}

func (d *document) canonicalObject(dst []byte, object int) []byte {
	before := len(d.entries)
	for name := range d.members(object) {
		key, tag := d.key(name)
		d.entries = append(d.entries, entry{key, tag, name})
	}
	entries := d.entries[before:]
	byName := func(a, b entry) int { return bytes.Compare(a.key, b.key) }
	if !slices.IsSortedFunc(entries, byName) { // AINL's adapter sorts them
		slices.SortStableFunc(entries, byName)
	}
	dst = append(dst, '{')
	for i, e := range entries {
		if i > 0 && bytes.Equal(entries[i-1].key, e.key) {
			d.duplicates = append(d.duplicates, e.name)
		}
		dst = d.canonical(token(dst, e.tag, e.key), e.name+1)
	}
	clear(entries) // they point into raw, which is not ours to keep
	d.entries = d.entries[:before]
	return append(dst, '}')
}

// The tags of a string in the canonical form.
const (
	plainText = 's'
	halfPair  = 'u' // it holds half a surrogate pair and so is no text
)

// key returns what a string is compared by: its text, or, when it holds half
// a surrogate pair, the way it is written.
func (d *document) key(at int) (key []byte, tag byte) {
	if !d.nodes[at].escaped {
		return d.inner(at), plainText
	}
	text, ok := d.text(at)
	if !ok {
		return d.value(at), halfPair
	}
	return []byte(text), plainText
}

// ContentHash names what an object says, as Task.Hash does. The findings refuse
// what is no JSON object, or one that says something twice.
func ContentHash(object []byte) (string, Findings) {
	c := check{document: documents.Get().(*document)}
	defer c.release()
	if !c.parse(object) {
		return hash(object), c.findings
	}
	sum := c.contentHash()
	c.repeated()
	return sum, c.findings
}
