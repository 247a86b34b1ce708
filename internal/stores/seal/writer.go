package seal

// Many is how many events are sealed at once.
const Many = 1000

// A Writer makes the seals of events as they are written. Its zero value seals nothing.
type Writer struct {
	Signer func() (Signer, error)
	Known  Seal   // the last head that something outside the ledger has
	Sealed func() // is called after a seal is durable, and doesn't wait; may be nil

	Head   Seal // the latest seal
	Stale  bool // events may have been written that it doesn't know
	open   *Range
	last   int64 // the seq of the last event in open
	failed bool  // signing failed, so only Make tries again
}

// Clone returns a writer that goes on from here, and leaves this one as it is.
func (w Writer) Clone() Writer {
	if w.open != nil {
		w.open = w.open.Clone()
	}
	return w
}

// Start goes on after the latest seal. A new chain begins with the known head: there is no seal, or the ledger
// was restored after it.
func (w *Writer) Start(head Seal, newChain bool) {
	w.Head, w.Stale, w.last = head, false, head.Last
	if newChain && w.Known.Hash != (Hash{}) {
		w.Head.Hash, w.Head.Time = w.Known.Hash, max(head.Time, w.Known.Time)
	}
	w.open = NewRange(w.Head.Hash)
}

// Counts reports whether events are to be added as they are written.
func (w *Writer) Counts() bool { return w.Signer != nil && !w.Stale }

// Add adds the next event.
func (w *Writer) Add(item Item) {
	w.open.Add(item.Hash)
	w.last = item.Seq
}

// Last returns the seq of the last event that was added.
func (w *Writer) Last() int64 { return w.last }

// IsDue reports whether there are many events without a seal, and signing didn't fail before.
func (w *Writer) IsDue() bool { return w.Counts() && w.open.Events >= Many && !w.failed }

// Make makes the seal of all events after the head, and reports whether there are some.
func (w *Writer) Make(now int64) (Seal, bool, error) {
	if !w.Counts() || w.open.Events == 0 {
		return Seal{}, false, nil
	}
	s := Seal{First: w.Head.Last + 1, Last: w.last, Previous: w.Head.Hash, Hash: w.open.Sum(), Time: max(now, w.Head.Time+1)}
	by, err := w.Signer()
	if err == nil {
		s, err = s.Signed(by)
	}
	if w.failed = err != nil; w.failed {
		return Seal{}, false, err
	}
	w.Head, w.open = s, NewRange(s.Hash)
	return s, true, nil
}

// Prune makes the record of the removal of events in their order, which are sealed.
func (w *Writer) Prune(items []Item, now int64) (Prune, error) {
	p := Prune{Head: w.Head.Hash, Time: now}
	for _, item := range items {
		p.Seqs = p.Seqs.with(Span{item.Seq, item.Seq})
	}
	by, err := w.Signer()
	if err != nil {
		return Prune{}, err
	}
	return p.Signed(by)
}
