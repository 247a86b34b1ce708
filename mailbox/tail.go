package mailbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxLine    = 1 << 20   // default of TailOptions.MaxLine
	batchBytes = 1 << 20   // default of TailOptions.BatchBytes
	batchLines = 1024      // default of TailOptions.BatchLines
	firstWant  = 256 << 10 // bytes of the first read of a file
	maxOpen    = 256       // limit of open files with a name
)

// TailOptions configure a Tail. Zero values are the defaults.
type TailOptions struct {
	MaxLine    int64                        // longest line in bytes; default 1 MiB
	FromEnd    bool                         // the files of the first look start at their end; ignored with cursors
	BatchBytes int64                        // approximate limit of a batch in bytes; default 1 MiB
	BatchLines int                          // limit of a batch in lines; default 1024
	Notice     func(path string, err error) // called once per path and cause of an unread file, and with nil when that ends; may be nil
}

// A Tail reads the complete lines of all *.jsonl of a directory, each once, and gives every file its
// share. It identifies files by inode: a renamed file continues, a replaced one is read to
// its end before its successor, and one with a changed beginning is read again. Only
// Box.Tail and State.RunTail make one. It is for one goroutine.
type Tail struct {
	prefix  string // of the names in cursors
	path    string // of the directory
	openDir func() (fd int, err error)
	opts    TailOptions

	savedCursors  savedCursors       // cursors of files not found yet
	fingerprints  fingerprints       // of files with a cursor
	paths         map[string]bool    // names in the saved cursors
	dir           *os.File           // tasks/ at the last look
	listing       listing            // its content
	named         map[string]*source // by file name
	known         map[inode]*source  // by inode, with nameless files
	retired       []*source          // nameless files, the oldest first
	open          []*source          // open files with a name, the oldest first
	ready         []*source          // files to read, in order
	cursorsDue    []*source          // files whose cursor moved without lines
	lost          []*source          // nameless files that aren't open
	abandoned     []Batch            // ends of files that are gone
	searchedMoved bool               // the files of saved cursors were searched
	first         bool               // nothing was ever read here: found content is new, not repeated
	pending       *pending           // the batch without Done
	ahead         *ahead             // the lines after it; nil: none read
	reported      map[string]string  // the reported cause of each path
	rounds        rounds
}

// pending is a batch that was returned.
type pending struct {
	batch  Batch
	source *source // nil for the end of a removed file
	end    bool
	also   []*source // sources of the cursors in More
}

// Tail continues reading at the cursors. A removed file ends with a Batch that is Gone.
func (b *Box) Tail(cursors []Cursor, opts TailOptions) *Tail {
	return newTail(tasksName, b.TasksDir(), func() (int, error) {
		_, release := b.use()
		defer release()
		return b.openDir(tasksName, unix.O_RDONLY)
	}, cursors, opts)
}

func newTail(prefix, path string, openDir func() (int, error), cursors []Cursor, opts TailOptions) *Tail {
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
		prefix: prefix, path: path, openDir: openDir, opts: opts,
		savedCursors: newSavedCursors(cursors), fingerprints: newFingerprints(cursors), paths: paths, first: first,
		named: map[string]*source{}, known: map[inode]*source{}, reported: map[string]string{},
	}
}

// Next returns some lines of one file; the files take turns. A file whose lines take the
// caller long gets fewer lines in each batch. Next returns the same batch until Done: the
// caller accepts lines and saves the cursor in one step, and no line may be skipped if that
// fails. A batch with a cursor and no lines must be saved too; it comes only if there are
// no lines. An Empty batch means that, after a look at every file, there is no more for
// now.
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
			return Batch{}, fmt.Errorf("look into %s: %w", t.path, err)
		}
		t.rounds.begin(len(t.ready), begun)
	}
	t.rounds.begun = time.Now()
	return t.pending.batch, nil
}

// Done says that the batch is saved.
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

// remindSuccessor has the cursor of the current file with a name saved again, for callers
// with one cursor per name.
func (t *Tail) remindSuccessor(s *source) {
	if now := t.named[path.Base(s.cursor.Path)]; now != nil {
		t.remind(now)
	}
}

// remind has the cursor of a file saved again.
func (t *Tail) remind(s *source) {
	s.saved = Cursor{}
	t.cursorsDue = append(t.cursorsDue, s)
}

// readNext makes the next lines of the ready files pending. It returns false if there are
// none, or if it is time for a look.
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

// turn removes the first ready file, or moves it to the end.
func (t *Tail) turn(out bool) {
	s := t.ready[0]
	t.ready = t.ready[1:]
	t.rounds.left--
	s.queued = !out
	if !out {
		t.ready = append(t.ready, s)
	}
}

// mostCursors limits the cursors saved at once without lines. Each batch of them follows a
// look at every file.
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

// read reads a file, and opens it if necessary.
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

// compare checks whether a new file is a copy. If it isn't, its content is new.
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

// count updates the fingerprints for the cursor of the source.
func (t *Tail) count(s *source) {
	t.fingerprints.remove(s.counted)
	t.fingerprints.add(s.cursor)
	s.counted = s.cursor
}

// reportFault reports why a file can't be read. The Tail tries again.
func (t *Tail) reportFault(s *source, err error) {
	s.seen = stamp{}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errReplaced) {
		t.report(s.cursor.Path, err)
	}
}

// report calls Notice once per path and cause.
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

// Close closes the files.
func (t *Tail) Close() error {
	for _, s := range t.known {
		s.close()
	}
	if t.dir == nil {
		return nil
	}
	return t.dir.Close()
}
