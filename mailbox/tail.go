package mailbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"
)

const (
	maxLine    = 1 << 20   // default of TailOptions.MaxLine
	batchBytes = 1 << 20   // default of TailOptions.BatchBytes
	batchLines = 1024      // default of TailOptions.BatchLines
	firstWant  = 256 << 10 // how much of a file is read the first time
	maxOpen    = 256       // files with a name that are kept open
)

// TailOptions says how to read. Zero values are the defaults.
type TailOptions struct {
	MaxLine    int64                        // longest line in bytes; default 1 MiB
	FromEnd    bool                         // the files of the first look start at their end; ignored when there are cursors
	BatchBytes int64                        // about how many bytes a batch has at most; default 1 MiB
	BatchLines int                          // most lines of one batch; default 1024
	Notice     func(path string, err error) // called once per path and cause of an unread file, and with nil when that ends; may be nil
}

// A Tail reads the complete lines of all tasks/*.jsonl, each once, and of no
// file more than its share. It knows files by their inode: one that was renamed
// goes on, one that was replaced is read to its end before its successor, and
// one whose beginning changed is read anew. Only Box.Tail makes one. It is for
// one goroutine.
type Tail struct {
	box  *Box
	opts TailOptions

	savedCursors  savedCursors       // cursors of files not met yet
	fingerprints  fingerprints       // how the files begin of which there are cursors
	paths         map[string]bool    // what the cursors of an earlier life were called
	dir           *os.File           // tasks/ as of the last look
	listing       listing            // what was in it
	named         map[string]*source // by file name
	known         map[inode]*source  // by inode, those without a name too
	retired       []*source          // those without a name, oldest first
	open          []*source          // those with a name that are open, oldest first
	ready         []*source          // to be read, next one first
	cursorsDue    []*source          // those whose cursor moved without lines
	lost          []*source          // those without a name that are not open
	abandoned     []Batch            // the ends of files that are not there any more
	searchedMoved bool               // the files of an earlier life were looked for
	first         bool               // nothing was ever read here: what is found is new, not read again
	pending       *pending           // the batch that was not Done
	ahead         *ahead             // what was read after it, if anything
	reported      map[string]string  // the reported cause of each path
	rounds        rounds
}

// pending is a batch on its way.
type pending struct {
	batch  Batch
	source *source // nil for the end of a file that is not there any more
	end    bool
	also   []*source // whose cursors are More of the batch
}

// Tail goes on reading where the cursors say. Files that
// are gone end in a Batch that is Gone.
func (b *Box) Tail(cursors []Cursor, opts TailOptions) *Tail {
	if opts.MaxLine <= 0 {
		opts.MaxLine = maxLine
	}
	if opts.BatchBytes <= 0 {
		opts.BatchBytes = batchBytes
	}
	if opts.BatchLines <= 0 {
		opts.BatchLines = batchLines
	}
	if opts.Notice == nil {
		opts.Notice = func(string, error) {}
	}
	first := len(cursors) == 0
	opts.FromEnd = opts.FromEnd && first
	paths := make(map[string]bool, len(cursors))
	for _, c := range cursors {
		paths[c.Path] = true
	}
	return &Tail{
		box: b, opts: opts, savedCursors: newSavedCursors(cursors), fingerprints: newFingerprints(cursors), paths: paths, first: first,
		named: map[string]*source{}, known: map[inode]*source{}, reported: map[string]string{},
	}
}

// Next returns some lines of one file, and the files take turns: a file whose lines
// take their caller long has fewer of them in each batch. The same batch
// comes again until it is Done: accepting lines and recording the cursor is one
// step of the caller's, and when that fails no line must be skipped. A batch
// with a cursor and no lines is to be recorded too; it comes only when there
// are no lines. An Empty batch means that, after a look at every file, there is
// no more for now.
func (t *Tail) Next() (Batch, error) {
	if t.pending != nil {
		return t.pending.batch, nil
	}
	for looked := false; !t.nextAbandoned() && !t.readNext(); looked = true {
		if looked && len(t.ready) == 0 {
			if t.nextCursorDue() {
				break
			}
			return Batch{}, nil
		}
		begun := time.Now()
		if err := t.look(); err != nil {
			return Batch{}, fmt.Errorf("look into %s: %w", t.box.TasksDir(), err)
		}
		t.rounds.begin(len(t.ready), begun)
	}
	t.rounds.begun = time.Now()
	return t.pending.batch, nil
}

// Done says that the batch is written down and need not come again.
func (t *Tail) Done(b Batch) {
	p := t.pending
	if p == nil || !p.batch.Cursor.equal(b.Cursor) {
		return
	}
	t.pending = nil
	if p.source == nil {
		t.abandonedDone(b)
		return
	}
	s := p.source
	s.cursor, s.saved = b.Cursor, b.Cursor
	t.count(s)
	for i, other := range p.also {
		other.saved = p.batch.More[i]
	}
	if s.retired {
		t.remindSuccessor(s)
	}
	if len(b.Lines) > 0 {
		s.spent(time.Since(t.rounds.begun), len(b.Lines), t.opts)
		t.turn(p.end)
	}
}

// remindSuccessor has the cursor of the file that bears the name now written
// down again, for whoever keeps one cursor per name.
func (t *Tail) remindSuccessor(s *source) {
	if now := t.named[path.Base(s.cursor.Path)]; now != nil {
		t.remind(now)
	}
}

// remind has the cursor of a file written down again.
func (t *Tail) remind(s *source) {
	s.saved = Cursor{}
	t.cursorsDue = append(t.cursorsDue, s)
}

// readNext makes the next lines of the files that are ready pending. It returns
// false when there are none, or when it is time to look for other files.
func (t *Tail) readNext() bool {
	for len(t.ready) > 0 && !t.rounds.over() {
		s := t.ready[0]
		if s.after != nil && s.after.queued {
			t.turn(false)
			continue
		}
		s.after = nil
		piece, err := t.readOrAhead(s)
		switch {
		case err != nil:
			t.reportFault(s, err)
			t.turn(true)
		case len(piece.lines) > 0:
			t.readAgain(s)
			t.pending = &pending{batch: Batch{Lines: piece.lines, Cursor: piece.cursor}, source: s, end: piece.end}
			return true
		default:
			t.readAgain(s)
			s.cursor = piece.cursor
			t.count(s)
			if s.cursorDue() {
				t.cursorsDue = append(t.cursorsDue, s)
			}
			t.turn(piece.end)
		}
	}
	return false
}

// readAgain clears the report about a file that is readable again. The report of a last
// line without a newline stays until the line is read.
func (t *Tail) readAgain(s *source) {
	if !s.warned {
		t.clearReport(s.cursor.Path)
	}
}

// turn takes the first file out of the row, or to its back.
func (t *Tail) turn(out bool) {
	s := t.ready[0]
	t.ready = t.ready[1:]
	t.rounds.left--
	s.queued = !out
	if !out {
		t.ready = append(t.ready, s)
	}
}

// mostCursors is how many cursors without lines are written down at once. Each batch of
// them follows a look at every file.
const mostCursors = 4096

// nextCursorDue makes cursors pending that moved without lines.
func (t *Tail) nextCursorDue() bool {
	var p *pending
	for len(t.cursorsDue) > 0 && (p == nil || len(p.also) < mostCursors) {
		s := t.cursorsDue[0]
		t.cursorsDue = t.cursorsDue[1:]
		switch {
		case !s.cursorDue() || s.retired:
		case p == nil:
			p = &pending{batch: Batch{Cursor: s.cursor}, source: s, end: true}
		default:
			p.batch.More = append(p.batch.More, s.cursor)
			p.also = append(p.also, s)
		}
	}
	t.pending = p
	return p != nil
}

// read opens the file when it is not, and reads it.
func (t *Tail) read(s *source) (piece, error) {
	if s.file == nil {
		if err := s.open(t.dir, path.Base(s.cursor.Path)); err != nil {
			return piece{}, err
		}
		t.open = append(t.open, s)
		if len(t.open) > maxOpen {
			t.open[0].close()
			t.open = t.open[1:]
		}
	}
	if s.strange {
		if err := t.compare(s); err != nil {
			return piece{}, err
		}
	}
	return s.read(t.opts)
}

// compare finds out whether a file that is new to us is a copy. If not, what
// it says is new.
func (t *Tail) compare(s *source) error {
	block, err := s.bytes(0, blockLen)
	if err != nil {
		return err
	}
	s.strange = false
	if !t.fingerprints.match(block) {
		s.cursor.Replay = 0
	}
	return nil
}

// count keeps heads as the cursor of the source has it.
func (t *Tail) count(s *source) {
	t.fingerprints.remove(s.counted)
	t.fingerprints.add(s.cursor)
	s.counted = s.cursor
}

// reportFault tells why a file is not read. It will be tried again.
func (t *Tail) reportFault(s *source, err error) {
	s.seen = stamp{}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errReplaced) {
		t.report(s.cursor.Path, err)
	}
}

// report gives notice once per path and cause.
func (t *Tail) report(path string, err error) {
	if cause := err.Error(); t.reported[path] != cause {
		t.reported[path] = cause
		t.opts.Notice(path, err)
	}
}

// clearReport reports that the fault of a path has ended.
func (t *Tail) clearReport(path string) {
	if _, was := t.reported[path]; was {
		delete(t.reported, path)
		t.opts.Notice(path, nil)
	}
}

// Close lets go of the files.
func (t *Tail) Close() error {
	for _, s := range t.known {
		s.close()
	}
	if t.dir == nil {
		return nil
	}
	return t.dir.Close()
}
