package mailbox

import (
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// seekMoved looks for the files that have no task file's name any more and are not open:
// those of an earlier life, once, and those that were renamed since. One that has another
// name in tasks/, such as x.jsonl.1, is read to its end. One that has none is gone.
func (t *Tail) seekMoved() error {
	if t.dir == nil {
		return nil
	}
	if !t.searchedMoved {
		for _, c := range t.savedCursors.remaining() {
			t.lost = append(t.lost, &source{cursor: c, saved: c, counted: c, want: min(firstWant, t.opts.BatchBytes)})
		}
		t.searchedMoved = true
	}
	if len(t.lost) == 0 {
		return nil
	}
	names, err := t.otherNames()
	if err != nil {
		return err
	}
	for _, s := range t.lost {
		if t.named[path.Base(s.cursor.Path)] == s {
			continue // it came back
		}
		if name, ok := names[s.key()]; !ok || !t.follow(s, name) {
			t.abandon(s, s.seen == stamp{} || s.cursor.Offset < s.seen.size)
		}
	}
	t.lost = nil
	return nil
}

// otherNames lists the regular files in tasks/ that are no task files by their names.
func (t *Tail) otherNames() (map[inode]string, error) {
	if _, err := t.dir.Seek(0, 0); err != nil {
		return nil, err
	}
	names, err := t.dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	others := map[inode]string{}
	for _, name := range names {
		var stat unix.Stat_t
		if t.listing.has(name) || unix.Fstatat(int(t.dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // it is gone since, or it is a task file
		}
		if stat.Mode&unix.S_IFMT == unix.S_IFREG {
			others[newStamp(&stat).key] = name
		}
	}
	return others, nil
}

// follow reads on in a file that has another name now. Its lines are those of the name
// that it had. It reports false when that is another file with the same number.
func (t *Tail) follow(s *source, name string) bool {
	if s.open(t.dir, name) != nil {
		return false
	}
	size, err := s.file.Seek(0, io.SeekEnd)
	if err == nil {
		var same bool
		if same, err = s.unchanged(size); err == nil && same {
			delete(t.savedCursors, s.cursor.Inode)
			s.retired, s.since = true, time.Now()
			t.known[s.key()] = s
			t.retired = append(t.retired, s)
			if now := t.named[path.Base(s.cursor.Path)]; now != nil {
				now.after = s
			}
			t.enqueue(s)
			return true
		}
	}
	s.close()
	return false
}

// abandon ends the reading of a file that nobody finds again. What may have been behind its
// cursor is said when it was lost, and written down in either case, so that the next life
// does not look for it.
func (t *Tail) abandon(s *source, lost bool) {
	if t.known[s.key()] == s {
		delete(t.known, s.key())
		t.fingerprints.remove(s.counted)
	}
	c := s.cursor
	c.Dev, c.Inode = 0, 0
	if lost || t.named[path.Base(c.Path)] == nil {
		t.abandoned = append(t.abandoned, Batch{Cursor: c, Gone: lost})
	}
}

// nextAbandoned makes the end of a file pending.
func (t *Tail) nextAbandoned() bool {
	if len(t.abandoned) == 0 {
		return false
	}
	t.pending = &pending{batch: t.abandoned[0]}
	return true
}

// abandonedDone takes note that the end of a file is written down. The cursor of the file that
// has its name now is written down again, for there is one for each name.
func (t *Tail) abandonedDone(b Batch) {
	t.abandoned = t.abandoned[1:]
	if now := t.named[path.Base(b.Cursor.Path)]; now != nil {
		t.remind(now)
	}
}

// remaining returns the cursors of files that were not met, in the order of their names.
func (s savedCursors) remaining() (cursors []Cursor) {
	for _, same := range s {
		for _, c := range same {
			if c.Inode != 0 { // or it was abandoned before
				cursors = append(cursors, c)
			}
		}
	}
	slices.SortFunc(cursors, func(a, b Cursor) int { return strings.Compare(a.Path, b.Path) })
	return cursors
}
