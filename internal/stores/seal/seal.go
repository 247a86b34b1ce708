// Package seal makes the history of a ledger verifiable: each range of events has a signed seal that names the
// seal before it. It reads no file, no clock and no ledger.
package seal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strconv"
)

// A Hash is a SHA-256 hash.
type Hash [sha256.Size]byte

// String returns the hash as 64 hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes what String returns.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(h)) {
		return errors.New("hash has not 64 hexadecimal digits")
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// An Event has the columns of an event as the ledger stores them.
type Event struct {
	Seq      int64
	Time     int64 // microseconds since 1970
	Kind     string
	Task     string // the id; "" for none
	Revision int64  // 0 without a task
	Data     []byte
}

// Hash returns the SHA-256 hash of seq, time, kind, task id, revision and data. Before the bytes of each, there is their
// number as eight bytes, the highest one first; numbers are written in decimal digits.
func (e Event) Hash() Hash {
	var space [512]byte
	text := appendNumber(space[:0], e.Seq)
	text = appendNumber(text, e.Time)
	text = appendField(text, e.Kind)
	text = appendField(text, e.Task)
	text = appendNumber(text, e.Revision)
	text = appendField(text, e.Data)
	return sha256.Sum256(text)
}

func appendField[T string | []byte](text []byte, field T) []byte {
	return append(binary.BigEndian.AppendUint64(text, uint64(len(field))), field...)
}

func appendNumber(text []byte, n int64) []byte {
	var digits [20]byte
	return appendField(text, strconv.AppendInt(digits[:0], n, 10))
}

// A Range makes the hash of a range: of "mailboxd/seal/1", the hash of the seal before, and the hash of each event.
type Range struct {
	sum    hash.Hash
	Events int // that were added
}

// NewRange begins the range after a seal with a hash; the first one of a ledger comes after the zero Hash.
func NewRange(previous Hash) *Range {
	r := &Range{sum: sha256.New()}
	r.sum.Write([]byte("mailboxd/seal/1"))
	r.sum.Write(previous[:])
	return r
}

// Add adds the hash of the next event.
func (r *Range) Add(h Hash) {
	r.sum.Write(h[:])
	r.Events++
}

// Clone returns a range that has the same events so far.
func (r *Range) Clone() *Range {
	sum, err := r.sum.(hash.Cloner).Clone()
	if err != nil {
		panic(err) // SHA-256 can always be cloned
	}
	return &Range{sum: sum, Events: r.Events}
}

// Sum returns the hash of the range so far.
func (r *Range) Sum() (h Hash) {
	r.sum.Sum(h[:0])
	return h
}

// A Seal covers all events from First to Last, both included.
type Seal struct {
	First     int64  `json:"first"`
	Last      int64  `json:"last"`
	Previous  Hash   `json:"previous"` // the hash of the seal before, or where a chain starts, of the last known one
	Hash      Hash   `json:"hash"`     // of the range
	Time      int64  `json:"time"`     // of sealing, in microseconds since 1970
	Key       string `json:"key"`      // the id of the key that signed
	Signature []byte `json:"signature"`
}

// Text returns what the signature of a seal signs.
func (s Seal) Text() []byte {
	return fmt.Appendf(nil, "mailboxd/seal/1\nfirst %d\nlast %d\nprevious %s\nhash %s\ntime %d\nkey %s\n",
		s.First, s.Last, s.Previous, s.Hash, s.Time, s.Key)
}

// Signed returns the seal with the key id and the signature of a signer.
func (s Seal) Signed(by Signer) (Seal, error) {
	var err error
	s.Key = by.Key()
	if s.Signature, err = by.Sign(s.Text()); err != nil {
		return Seal{}, fmt.Errorf("sign seal %d-%d: %w", s.First, s.Last, err)
	}
	return s, nil
}

// Verify checks the signature of the seal. It says nothing about events.
func (s Seal) Verify(keys Keys) error { return keys.verify(s.Key, s.Text(), s.Signature) }
