package mailbox

// ahead holds the lines that were read after the pending batch.
type ahead struct {
	source *source
	from   Cursor // of the pending batch
	piece  piece
}

// Ahead returns the batch after the pending one, so that the caller can prepare it before
// Done. It returns false if the next batch is not certain: another file is next, or there
// are no more lines for now. The returned batch is not pending; without Done for the batch
// before, Next never returns it.
func (t *Tail) Ahead() (b Batch, ok bool) {
	p := t.pending
	if p == nil || p.end || len(p.batch.Lines) == 0 || len(t.ready) != 1 || p.source.retired {
		return Batch{}, false
	}
	if t.ahead == nil && !t.readAhead(p.source, p.batch.Cursor) {
		return Batch{}, false // Next reads it again
	}
	return Batch{Lines: t.ahead.piece.lines, Cursor: t.ahead.piece.cursor}, true
}

// readAhead reads from a cursor after the source's own. Without lines, it leaves the source
// unchanged.
func (t *Tail) readAhead(s *source, from Cursor) bool {
	cursor, scanned := s.cursor, s.scanned
	s.cursor = from
	piece, err := t.read(s)
	s.cursor = cursor
	if err != nil || len(piece.lines) == 0 {
		s.scanned = scanned
		return false
	}
	piece.end = false // the file may have grown, and been checked, before this is used
	t.ahead = &ahead{source: s, from: from, piece: piece}
	return true
}

// readOrAhead reads the next lines of a file. It uses lines that were read ahead if the
// file still has them, because intake may have paused since.
func (t *Tail) readOrAhead(s *source) (piece, error) {
	a := t.ahead
	t.ahead = nil
	if a != nil && a.source == s && a.from.equal(s.cursor) && s.stillHas(a.piece.cursor) {
		return a.piece, nil
	}
	return t.read(s)
}

// stillHas reports whether the file still begins with the content before a cursor.
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
