package mailbox

// ahead is what was read of a file after the batch that is pending.
type ahead struct {
	source *source
	from   Cursor // of that batch
	piece  piece
}

// Ahead returns the batch that Next returns when the one it returned last is
// Done, so that its lines can be looked at meanwhile. It reports false when that
// is not certain: another file has its turn, or there is no more for now. What it
// returns is not pending: without Done for the one before, it never comes.
func (t *Tail) Ahead() (b Batch, ok bool) {
	p := t.pending
	if p == nil || p.end || len(p.batch.Lines) == 0 || len(t.ready) != 1 || p.source.retired {
		return Batch{}, false
	}
	if t.ahead == nil && !t.readAhead(p.source, p.batch.Cursor) {
		return Batch{}, false // it is found again when its turn has come
	}
	return Batch{Lines: t.ahead.piece.lines, Cursor: t.ahead.piece.cursor}, true
}

// readAhead reads on from a cursor that is not the source's yet. Unless there are
// lines, the source remains as it was.
func (t *Tail) readAhead(s *source, from Cursor) bool {
	cursor, scanned := s.cursor, s.scanned
	s.cursor = from
	piece, err := t.read(s)
	s.cursor = cursor
	if err != nil || len(piece.lines) == 0 {
		s.scanned = scanned
		return false
	}
	piece.end = false // the file may have grown, and been looked at, before this is used
	t.ahead = &ahead{source: s, from: from, piece: piece}
	return true
}

// readOrAhead reads the next lines of a file, unless that was done ahead and they
// are still there: intake may have paused since.
func (t *Tail) readOrAhead(s *source) (piece, error) {
	a := t.ahead
	t.ahead = nil
	if a != nil && a.source == s && a.from.equal(s.cursor) && s.stillHas(a.piece.cursor) {
		return a.piece, nil
	}
	return t.read(s)
}

// stillHas reports whether the file begins with what was read up to a cursor.
func (s *source) stillHas(read Cursor) bool {
	info, err := s.file.Stat()
	if err != nil {
		return false
	}
	now := *s
	now.cursor = read
	ok, err := now.unchanged(info.Size())
	return ok && err == nil
}
