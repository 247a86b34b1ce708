package envelope

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// contentHash hashes the content of a document. The order of members, white space and the
// escapes of strings don't count; numbers count as they are written (AINL-55). It also fills
// d.duplicates, because here the names of an object are sorted.
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

// canonical appends a node so that different values never give the same bytes: each value
// begins with its kind, and each string and number with its length. The recursion is at most as
// deep as scan allows.
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

// An entry is a member to be sorted for the canonical form.
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
	clear(entries) // they point into raw, which belongs to the caller
	d.entries = d.entries[:before]
	return append(dst, '}')
}

// The tags of a string in the canonical form.
const (
	plainText = 's'
	halfPair  = 'u' // holds half of a surrogate pair, so it is no text
)

// key returns the form of a string that comparisons use: its text, or its literal if it holds
// half of a surrogate pair.
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

// ContentHash hashes the content of an object, as Task.Hash does. The findings refuse a text
// that is no JSON object, or one with a duplicate name.
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
