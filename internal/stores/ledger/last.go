package ledger

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"mailboxd/internal/testtools/fault"
)

// SQLite takes a write-ahead log up to its first damaged frame and says nothing about the
// rest. So the number of each commit is in the tables, and then, without a sync, in a small
// file beside them: if that is ahead, commits are missing.

// A lastCommit is what that file has.
type lastCommit struct {
	ledger uint64 // as the table commits names it
	number uint64 // of the last commit
	base   uint64 // of the last commit that the main file alone has, since the log was last begun anew
}

const lastEnd = "-last"

// lastSize is the length of the file: three numbers and a checksum.
const lastSize = 28

func (c lastCommit) encode() []byte {
	b := make([]byte, 0, lastSize)
	for _, n := range [3]uint64{c.ledger, c.number, c.base} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// readLast reads the file beside a ledger. The error wraps fs.ErrNotExist if there is none, and
// errUnreadable if it is damaged. A writer may be about to write it, so it is read again then.
func readLast(path string) (c lastCommit, err error) {
	for range 8 {
		text, err := os.ReadFile(path + lastEnd)
		if err != nil {
			return lastCommit{}, err
		}
		if c, ok := decodeLast(text); ok {
			return c, nil
		}
	}
	return lastCommit{}, fmt.Errorf("%w: its file %s is damaged, which has the number of the last commit",
		errUnreadable, filepath.Base(path)+lastEnd)
}

func decodeLast(text []byte) (c lastCommit, ok bool) {
	if len(text) != lastSize || crc32.ChecksumIEEE(text[:lastSize-4]) != binary.LittleEndian.Uint32(text[lastSize-4:]) {
		return lastCommit{}, false
	}
	number := func(at int) uint64 { return binary.LittleEndian.Uint64(text[at:]) }
	return lastCommit{number(0), number(8), number(16)}, true
}

// openLast makes the file for a ledger, durably, and leaves it open.
func openLast(path string, c lastCommit) (*os.File, error) {
	file, err := os.OpenFile(path+lastEnd, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = file.WriteAt(c.encode(), 0)
	if err = errors.Join(err, file.Truncate(lastSize), file.Sync()); err == nil {
		fault.Synced("last-synced", file)
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Commits are what the tables say of themselves.
type commits struct {
	ledger, number uint64
	live           bool
}

const commitsQuery = "SELECT ledger, number, live FROM commits"

func readCommits(ctx context.Context, q querier) (c commits, err error) {
	var ledger, number int64
	err = q.QueryRowContext(ctx, commitsQuery).Scan(&ledger, &number, &c.live)
	c.ledger, c.number = uint64(ledger), uint64(number)
	return c, err
}

// compare returns an error that wraps errUnreadable if the tables miss commits. The file is read
// before them: a writer writes it after them.
func compare(last lastCommit, reading error, has commits, path string) error {
	missing := errors.Is(reading, fs.ErrNotExist)
	switch {
	case !has.live && (missing || errors.Is(reading, errUnreadable)):
		return nil // it was closed in order, and the next writer makes the file anew
	case missing:
		return fmt.Errorf("%w: its file %s is missing, which has the number of the last commit",
			errUnreadable, filepath.Base(path)+lastEnd)
	case reading != nil:
		return reading
	case last.ledger != has.ledger:
		return fmt.Errorf("%w: it isn't the one that %s belongs to", errUnreadable, filepath.Base(path)+lastEnd)
	case last.number > has.number:
		missed := count(last.number - has.number)
		return fmt.Errorf("%w: its last %s missing: it has %d, and there were %d", errUnreadable, missed, has.number, last.number)
	}
	return nil
}

func count(commits uint64) string {
	if commits == 1 {
		return "commit is"
	}
	return fmt.Sprintf("%d commits are", commits)
}
