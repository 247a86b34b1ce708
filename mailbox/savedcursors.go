package mailbox

// savedCursors are the cursors of an earlier daemon whose files were not found yet, by
// inode number.
type savedCursors map[uint64][]Cursor // by inode number

func newSavedCursors(cursors []Cursor) savedCursors {
	s := savedCursors{}
	for _, c := range cursors {
		s[c.Inode] = append(s[c.Inode], c)
	}
	return s
}

// take returns the cursor of a file and removes it: the one of the same inode and name;
// or the furthest of the inode, when the file was renamed; or the one of the same name
// and inode number on another device, since a restart may renumber devices. Reading
// shows whether the content is the same.
func (s savedCursors) take(key inode, name string) (best Cursor, ok bool) {
	for _, c := range s[key.ino] {
		if matchRank(c, key, name) > matchRank(best, key, name) || matchRank(c, key, name) == matchRank(best, key, name) && c.Offset > best.Offset {
			best = c
		}
	}
	delete(s, key.ino)
	return best, matchRank(best, key, name) > 0
}

func matchRank(c Cursor, key inode, name string) int {
	switch same := c.Dev == key.dev && c.Inode == key.ino; {
	case same && c.Path == name:
		return 3
	case same:
		return 2
	case c.Inode == key.ino && c.Path == name:
		return 1
	}
	return 0
}
