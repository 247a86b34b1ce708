package mailbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	restAfter    = 2 * time.Second  // then the rest of a replaced file is complete
	warnAfter    = time.Minute      // then an unterminated last line is reported
	forgetAfter  = 10 * time.Minute // then the writer of a replaced file has closed it
	keepRetired  = 16               // limit of replaced files that are followed
	taskSuffix   = ".jsonl"
	settledAfter = 2 * time.Second // the time stamps of directories are coarser than their changes
)

// ErrUnterminated says that the last line of a task file has had no newline for a while.
var ErrUnterminated = fmt.Errorf("the last line has had no newline for %v: it is read when it has one", warnAfter)

// look lists the files and finds the changed ones, which become ready.
func (t *Tail) look() error {
	if err := t.list(); err != nil {
		return err
	}
	if t.rearranged() {
		t.arrange()
	}
	if err := t.seekMoved(); err != nil {
		return err
	}
	for _, f := range t.listing.found {
		if s := t.named[f.name]; s != nil && s.key() == f.stamp.key {
			t.observe(s, f.stamp)
		}
	}
	t.first, t.opts.FromEnd = false, false
	for _, s := range slices.Clone(t.retired) {
		now, err := stampOf(int(s.file.Fd()))
		if err != nil {
			t.forget(s)
			continue
		}
		t.observe(s, now)
		t.visit(s)
	}
	t.thin()
	return nil
}

// list stats every task file. A missing directory is empty.
func (t *Tail) list() error {
	fd, err := t.openDir()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if t.dir != nil {
		t.dir.Close() // read-only
		t.dir = nil
	}
	if err != nil {
		t.listing = listing{}
		return nil
	}
	t.dir = os.NewFile(uintptr(fd), t.prefix)
	if err := t.listing.update(t.dir); err != nil {
		return err
	}
	for _, f := range t.listing.odd {
		t.report(t.prefix+"/"+f.name, f.err)
	}
	for path := range t.reported {
		if !t.listing.has(strings.TrimPrefix(path, t.prefix+"/")) {
			t.clearReport(path)
		}
	}
	return nil
}

// observe records the state of a file, and queues a changed one.
func (t *Tail) observe(s *source, now stamp) {
	switch {
	case s.seen != now:
		s.seen, s.since = now, time.Now()
		t.enqueue(s)
	case s.warned || s.queued || now.size <= s.cursor.Offset || s.retired:
	case time.Since(s.since) >= warnAfter:
		s.warned = true
		t.report(s.cursor.Path, ErrUnterminated)
	}
	if s.warned && now.size <= s.cursor.Offset {
		s.warned = false
		t.clearReport(s.cursor.Path)
	}
}

func (t *Tail) enqueue(s *source) {
	if !s.queued {
		s.queued = true
		t.ready = append(t.ready, s)
	}
}

// visit queues the unterminated rest of a nameless file when its writer is silent, and
// forgets the file after a longer silence.
func (t *Tail) visit(s *source) {
	quiet := time.Since(s.since)
	switch {
	case s.queued:
	case quiet >= restAfter && s.cursor.Offset < s.seen.size:
		s.final = true
		t.enqueue(s)
	case quiet >= forgetAfter:
		t.forget(s)
	}
}

// thin forgets the oldest nameless files beyond the limit.
func (t *Tail) thin() {
	for _, s := range slices.Clone(t.retired) {
		if len(t.retired) <= keepRetired {
			return
		}
		if !s.queued && s.cursor.Offset >= s.seen.size {
			t.forget(s)
		}
	}
}

func (t *Tail) forget(s *source) {
	s.close()
	t.abandon(s, false)
	t.retired = slices.DeleteFunc(t.retired, func(other *source) bool { return other == s })
	t.ready = slices.DeleteFunc(t.ready, func(other *source) bool { return other == s })
	s.queued = false
}

// rearranged reports whether a name now means another file.
func (t *Tail) rearranged() bool {
	if len(t.listing.found) != len(t.named) {
		return true
	}
	return slices.ContainsFunc(t.listing.found, func(f found) bool {
		s := t.named[f.name]
		return s == nil || s.key() != f.stamp.key
	})
}

// arrange assigns a source to every file. A file with several names is read under the
// first.
func (t *Tail) arrange() {
	before := t.named
	t.named = make(map[string]*source, len(t.listing.found))
	placed := make(map[inode]bool, len(t.listing.found))
	location := func(f found, s *source) {
		placed[f.stamp.key] = true
		t.named[f.name] = s
	}
	for _, f := range t.listing.found { // names with the same file as before
		if s := before[f.name]; s != nil && s.key() == f.stamp.key && !placed[f.stamp.key] {
			location(f, s)
		}
	}
	for _, f := range t.listing.found { // new names of known files
		if s := t.known[f.stamp.key]; s != nil && !placed[f.stamp.key] {
			t.rename(s, f.name)
			location(f, s)
		}
	}
	for _, f := range t.listing.found { // unknown files
		if !placed[f.stamp.key] {
			location(f, t.meet(f, before[f.name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if s := before[name]; !placed[s.key()] {
			t.retire(s)
		}
	}
}

// rename continues a file under another name.
func (t *Tail) rename(s *source, name string) {
	s.cursor.Path = t.prefix + "/" + name
	t.cursorsDue = append(t.cursorsDue, s)
	if s.retired {
		s.retired = false
		t.retired = slices.DeleteFunc(t.retired, func(other *source) bool { return other == s })
		t.open = append(t.open, s)
	}
}

// meet makes the source of a new file. It is read after the file that had its name before.
func (t *Tail) meet(f found, before *source) *source {
	s := &source{want: min(firstWant, t.opts.BatchBytes), after: before}
	name := t.prefix + "/" + f.name
	if cursor, ok := t.savedCursors.take(f.stamp.key, name); ok {
		s.cursor, s.saved, s.counted = cursor, cursor, cursor
		s.cursor.Path, s.cursor.Dev = name, f.stamp.key.dev
	} else {
		s.cursor = Cursor{Path: name, Dev: f.stamp.key.dev, Inode: f.stamp.key.ino}
		if !t.first {
			s.cursor.Replay = f.stamp.size // may repeat earlier content
			s.strange = before == nil && !t.knew(name)
		}
		s.fromEnd = t.opts.FromEnd
	}
	t.known[f.stamp.key] = s
	t.cursorsDue = append(t.cursorsDue, s)
	return s
}

// knew reports whether a name belonged to another file that is no longer followed under it.
// A new file with that name replaces that one.
func (t *Tail) knew(path string) bool {
	return t.paths[path] || slices.ContainsFunc(t.retired, func(s *source) bool { return s.cursor.Path == path })
}

// retire follows a file without a name: it may have unread lines, and its writer may add
// more. The file must be open.
func (t *Tail) retire(s *source) {
	t.open = slices.DeleteFunc(t.open, func(other *source) bool { return other == s })
	if s.file == nil {
		t.lost = append(t.lost, s)
		t.ready = slices.DeleteFunc(t.ready, func(other *source) bool { return other == s })
		s.queued = false
		return
	}
	s.retired = true
	s.since = time.Now()
	t.retired = append(t.retired, s)
	t.enqueue(s)
}
