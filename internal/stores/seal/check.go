package seal

import (
	"cmp"
	"fmt"
	"iter"
)

// An Item is an event that is to be checked, or what is left of one.
type Item struct {
	Seq    int64
	Hash   Hash
	Pruned bool // the event is gone, and its seq and hash are left
}

// State says what a seal covers.
type State string

// The states of a Part.
const (
	Sealed   State = "sealed"   // all events are there
	Partly   State = "partly"   // retention removed some of the events
	Pruned   State = "pruned"   // retention removed all events
	Unsealed State = "unsealed" // no seal covers them
	Differs  State = "differs"  // the events aren't those that were sealed
)

// A Part is a range of one state.
type Part struct {
	State  State `json:"state"`
	First  int64 `json:"first"`
	Last   int64 `json:"last"`
	Events int   `json:"events"` // that are there
}

// A Difference is a sign that the history was changed. First and Last are the range that has it.
type Difference struct {
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	What  string `json:"what"`
}

// A Report is what a Checker found.
type Report struct {
	Events     int         `json:"events"` // that are there
	Seals      int         `json:"seals"`
	Parts      []Part      `json:"parts"`
	Starts     []Start     `json:"starts,omitempty"`
	Head       *Seal       `json:"head,omitempty"` // the latest seal
	Difference *Difference `json:"difference,omitempty"`
}

// A Start is where a chain begins that names a head which is not the seal before: after the ledger was lost or restored.
type Start struct {
	First int64 `json:"first"`
	Names Hash  `json:"names"`
}

// A Chain is what events are compared with.
type Chain struct {
	Seals    []Seal  // in their order
	Prunes   []Prune // in their order
	Keys     Keys    // with nil, no signature is checked
	Anchored []Seal  // that an anchor got, in their order
	Partial  bool    // seals may be missing: a bundle has those that cover its events
}

// A Checker compares a stream of events with a chain. It keeps no events in memory.
type Checker struct {
	chain  Chain
	pruned Seqs
	at     int    // the seal that the next item may belong to
	sum    *Range // of that seal
	left   int    // items of it without their events
	next   int64  // the seq that it has next, if none is missing
	report Report
}

// NewChecker returns a checker, which has checked the chain by itself.
func NewChecker(chain Chain) *Checker {
	c := &Checker{chain: chain}
	c.report.Seals = len(chain.Seals)
	if len(chain.Seals) > 0 {
		head := chain.Seals[len(chain.Seals)-1]
		c.report.Head = &head
	}
	c.checkPrunes()
	c.compareAnchored()
	c.begin()
	return c
}

// checkPrunes collects the seqs that retention removed.
func (c *Checker) checkPrunes() {
	heads := map[Hash]int64{}
	for _, s := range c.chain.Seals {
		heads[s.Hash] = s.Last
	}
	var sets []Seqs
	for _, p := range c.chain.Prunes {
		if len(p.Seqs) == 0 {
			continue
		}
		first, last := p.Seqs[0].First, p.Seqs[len(p.Seqs)-1].Last
		covered, known := heads[p.Head]
		if c.chain.Keys != nil {
			if err := p.Verify(c.chain.Keys); err != nil {
				c.differ(first, last, "the record of removed events: %v", err)
				continue
			}
		}
		if covered < last && (known || !c.chain.Partial) {
			c.differ(first, last, "the record of removed events names a head that doesn't cover them: %s", p.Head)
			continue
		}
		sets = append(sets, p.Seqs)
	}
	c.pruned = Union(sets...)
}

// compareAnchored finds the first seal that the anchor has, and the chain lacks.
func (c *Checker) compareAnchored() {
	has, anchored := map[Hash]bool{}, c.chain.Anchored
	for i, s := range c.chain.Seals {
		has[s.Hash] = true
		if i > 0 && s.Previous == c.chain.Seals[i-1].Hash {
			continue
		}
		for n, a := range anchored {
			if a.Hash == s.Previous { // the seals up to this one may be lost, and the chain says so
				anchored = anchored[n+1:]
				break
			}
		}
	}
	for _, a := range anchored {
		if !has[a.Hash] {
			c.differ(a.First, a.Last, "the anchor has a seal that is missing here: %s", a.Hash)
			return
		}
	}
}

func (c *Checker) differ(first, last int64, format string, args ...any) {
	if d := c.report.Difference; d == nil || first < d.First {
		c.report.Difference = &Difference{first, last, fmt.Sprintf(format, args...)}
	}
}

// begin checks a seal by itself, and begins its range.
func (c *Checker) begin() {
	if c.at == len(c.chain.Seals) {
		return
	}
	s := c.chain.Seals[c.at]
	c.sum, c.left, c.next = NewRange(s.Previous), 0, s.First
	if c.chain.Keys != nil {
		if err := s.Verify(c.chain.Keys); err != nil {
			c.differ(s.First, s.Last, "the seal: %v", err)
		}
	}
	before := Seal{}
	if c.at > 0 {
		before = c.chain.Seals[c.at-1]
	}
	switch {
	case s.Last < s.First || s.First <= before.Last:
		c.differ(s.First, s.Last, "the seal overlaps the one before, or has no range")
	case s.First != before.Last+1 && !c.chain.Partial:
		c.differ(before.Last+1, s.First-1, "the seal of this range is missing")
	case s.First == before.Last+1 && s.Previous != before.Hash:
		if c.at > 0 || !c.chain.Partial {
			c.report.Starts = append(c.report.Starts, Start{s.First, s.Previous})
		}
	}
}

// end compares a seal with the items that it had.
func (c *Checker) end() {
	s := c.chain.Seals[c.at]
	state, there := Sealed, c.sum.Events-c.left
	switch {
	case c.sum.Events == 0 && c.pruned.Covers(Span{s.First, s.Last}):
		state = Pruned
	case c.sum.Sum() != s.Hash:
		state = Differs
		c.mismatch(s)
	case c.left > 0 && there == 0:
		state = Pruned
	case c.left > 0:
		state = Partly
	}
	c.part(state, s.First, s.Last, there)
	c.at++
	c.begin()
}

// mismatch says how far the events of a seal are complete, since its hash is another one.
func (c *Checker) mismatch(s Seal) {
	switch {
	case c.next > s.Last:
		c.differ(s.First, s.Last, "an event was changed or added: the hash of the range is not that of the seal")
	case c.pruned.Covers(Span{c.next, c.next}):
		c.differ(s.First, s.Last, "event %d was removed by retention, and its hash is missing", c.next)
	default:
		c.differ(s.First, s.Last, "the hash of the range is not that of the seal, and event %d is missing", c.next)
	}
}

// part adds events to what is reported, together with those of the same state before.
func (c *Checker) part(state State, first, last int64, events int) {
	if n := len(c.report.Parts); n > 0 && c.report.Parts[n-1].State == state {
		c.report.Parts[n-1].Last = last
		c.report.Parts[n-1].Events += events
		return
	}
	c.report.Parts = append(c.report.Parts, Part{state, first, last, events})
}

// Add takes the next event. Events come in the order of their seqs.
func (c *Checker) Add(item Item) {
	for c.at < len(c.chain.Seals) && c.chain.Seals[c.at].Last < item.Seq {
		c.end()
	}
	if !item.Pruned {
		c.report.Events++
	} else if !c.pruned.Covers(Span{item.Seq, item.Seq}) {
		c.differ(item.Seq, item.Seq, "event %d is missing, and no signed record of its removal is there", item.Seq)
	}
	if c.at == len(c.chain.Seals) || item.Seq < c.chain.Seals[c.at].First {
		if c.at < len(c.chain.Seals) && !c.chain.Partial {
			c.differ(item.Seq, item.Seq, "event %d is before the range of a seal, and no seal covers it", item.Seq)
		}
		c.part(Unsealed, item.Seq, item.Seq, 1)
		return
	}
	c.sum.Add(item.Hash)
	if item.Pruned {
		c.left++
	}
	if item.Seq == c.next {
		c.next++
	}
}

// Report ends the check.
func (c *Checker) Report() Report {
	for c.at < len(c.chain.Seals) {
		c.end()
	}
	return c.report
}

// AddAll takes all events, and what is left of removed ones, each in the order of their seqs.
func (c *Checker) AddAll(events, pruned iter.Seq2[Item, error]) error {
	next, stop := iter.Pull2(pruned)
	defer stop()
	left, failed, more := next()
	for item, err := range events {
		for ; more && failed == nil && left.Seq < item.Seq; left, failed, more = next() {
			c.Add(left)
		}
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
		c.Add(item)
	}
	for ; more && failed == nil; left, failed, more = next() {
		c.Add(left)
	}
	return failed
}
