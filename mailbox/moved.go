package mailbox

import (
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// seekMoved looks for files that lost their task file name and aren't open: once those of
// earlier runs of the daemon, and later renamed ones. A file with another name in tasks/,
// such as x.jsonl.1, is read to its end. A file without a name is gone.
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

// otherNames lists the regular files in tasks/ without a task file's name.
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
			continue // removed since, or a task file
		}
		if stat.Mode&unix.S_IFMT == unix.S_IFREG {
			others[newStamp(&stat).key] = name
		}
	}
	return others, nil
}

// follow continues a file under another name. Its lines keep the original name. It returns
// false if the inode belongs to another file.
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

// abandon ends the reading of a file. Unread content is reported if lost is set. The end is
// saved in either case, so that the next run of the daemon doesn't look for the file.
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

// abandonedDone records that the end of a file is saved. The current file with its name
// saves its cursor again, because there is one cursor for each name.
func (t *Tail) abandonedDone(b Batch) {
	t.abandoned = t.abandoned[1:]
	if now := t.named[path.Base(b.Cursor.Path)]; now != nil {
		t.remind(now)
	}
}

// remaining returns the cursors of files that weren't found, in the order of their names.
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
