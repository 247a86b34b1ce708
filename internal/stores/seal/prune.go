package seal

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Prune is the record of events that retention removed. Their seqs and hashes stay, until all of a sealed range is
// removed.
type Prune struct {
	Seqs      Seqs   `json:"seqs"`
	Head      Hash   `json:"head"` // of the latest seal then, which ties the record to this ledger
	Time      int64  `json:"time"` // in microseconds since 1970
	Key       string `json:"key"`
	Signature []byte `json:"signature"`
}

// Text returns what the signature of a record signs.
func (p Prune) Text() []byte {
	return fmt.Appendf(nil, "mailboxd/prune/1\nseqs %s\nhead %s\ntime %d\nkey %s\n", p.Seqs, p.Head, p.Time, p.Key)
}

// Signed returns the record with the key id and the signature of a signer.
func (p Prune) Signed(by Signer) (Prune, error) {
	var err error
	p.Key = by.Key()
	if p.Signature, err = by.Sign(p.Text()); err != nil {
		return Prune{}, fmt.Errorf("sign record of removed events %s: %w", p.Seqs, err)
	}
	return p, nil
}

// Verify checks the signature of the record.
func (p Prune) Verify(keys Keys) error { return keys.verify(p.Key, p.Text(), p.Signature) }

// Seqs is a set of seqs: spans in their order, which neither overlap nor touch.
type Seqs []Span

// A Span is all seqs from First to Last, both included.
type Span struct{ First, Last int64 }

// SeqsOf returns the set of seqs that are in order.
func SeqsOf(ordered []int64) (s Seqs) {
	for _, seq := range ordered {
		s = s.with(Span{seq, seq})
	}
	return s
}

// with adds a span that begins after all others begin.
func (s Seqs) with(more Span) Seqs {
	if n := len(s); n > 0 && more.First <= s[n-1].Last+1 {
		s[n-1].Last = max(s[n-1].Last, more.Last)
		return s
	}
	return append(s, more)
}

// Union returns the seqs of all sets.
func Union(sets ...Seqs) (all Seqs) {
	spans := slices.Concat(sets...)
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.First, b.First) })
	for _, span := range spans {
		all = all.with(span)
	}
	return all
}

// Covers reports whether all seqs of a span are in the set.
func (s Seqs) Covers(span Span) bool {
	at, found := slices.BinarySearchFunc(s, span.First, func(e Span, first int64) int {
		switch {
		case e.Last < first:
			return -1
		case e.First > first:
			return 1
		}
		return 0
	})
	return found && s[at].Last >= span.Last
}

// String returns the set as "1-17,20".
func (s Seqs) String() string {
	var text strings.Builder
	for i, span := range s {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(span.String())
	}
	return text.String()
}

// String returns "1-17", or "20" for one seq.
func (s Span) String() string {
	if s.First == s.Last {
		return strconv.FormatInt(s.First, 10)
	}
	return fmt.Sprintf("%d-%d", s.First, s.Last)
}

// MarshalText writes what String returns.
func (s Seqs) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what String returns, and nothing else.
func (s *Seqs) UnmarshalText(text []byte) error {
	*s = nil
	for part := range strings.SplitSeq(string(text), ",") {
		from, to, isSpan := strings.Cut(part, "-")
		first, err := strconv.ParseInt(from, 10, 64)
		last := first
		if err == nil && isSpan {
			last, err = strconv.ParseInt(to, 10, 64)
		}
		n := len(*s)
		if err != nil || last < first || n > 0 && first <= (*s)[n-1].Last+1 {
			return fmt.Errorf("%q is no list of seqs in order", part)
		}
		*s = append(*s, Span{first, last})
	}
	if s.String() != string(text) {
		return fmt.Errorf("%q is no list of seqs in order", text)
	}
	return nil
}
