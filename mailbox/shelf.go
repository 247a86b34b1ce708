package mailbox

// A shelf holds the cursors of an earlier life until their files are met.
type shelf map[uint64][]Cursor // by inode number

func newShelf(cursors []Cursor) shelf {
	s := shelf{}
	for _, c := range cursors {
		s[c.Inode] = append(s[c.Inode], c)
	}
	return s
}

// take finds where reading of a file stopped: the cursor of that inode under
// that name; or the furthest of that inode, which was renamed then; or the one
// of that name and inode number on another device, as a restart may number
// devices anew. Whether the content is still the same shows when it is read.
func (s shelf) take(key inode, name string) (best Cursor, ok bool) {
	for _, c := range s[key.ino] {
		if rank(c, key, name) > rank(best, key, name) || rank(c, key, name) == rank(best, key, name) && c.Offset > best.Offset {
			best = c
		}
	}
	delete(s, key.ino)
	return best, rank(best, key, name) > 0
}

func rank(c Cursor, key inode, name string) int {
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
