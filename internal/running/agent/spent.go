package agent

import (
	"io"

	"mailboxd/envelope"
)

// maxRecent is how much of the end of a progress file Spent reads. Its lines have totals.
const maxRecent = 256 << 10

// Spent returns what a run has spent as far as the progress file in its directory says; nil if
// the file says nothing or can't be read. It may be called while the run goes on.
func Spent(dir string) *envelope.Cost {
	if dir == "" {
		return nil
	}
	f, err := openRegular(workDir(dir), progressFile)
	if err != nil {
		return nil
	}
	defer f.close()
	m := &meter{offset: max(0, min(f.size, maxProgress)-maxRecent)}
	m.long = m.offset > 0 // the rest of a line
	m.read(io.NewSectionReader(f, m.offset, min(f.size, maxProgress)-m.offset), false)
	return m.spent
}
