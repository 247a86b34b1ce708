package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
)

// The result codes by which SQLite says that it could not write. It says
// sqliteFull for ENOSPC alone: a quota (EDQUOT) and a limit of the file's size
// (EFBIG) are SQLITE_IOERR_WRITE (778), as a broken disk is.
const (
	sqliteBusy     = 5
	sqliteIOErr    = 10
	sqliteFull     = 13
	sqliteCantOpen = 14

	sqliteIOErrRead      = sqliteIOErr | 1<<8
	sqliteIOErrShortRead = sqliteIOErr | 2<<8
	sqliteIOErrShmSize   = sqliteIOErr | 19<<8
)

// withErrno adds to an error of SQLite the errno that caused it, or who has the lock, as far as
// that can be found out: SQLite keeps it to itself.
func withErrno(path string, err error) error {
	coded, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	if coded.Code()&0xff == sqliteBusy {
		return fmt.Errorf("%w: %s", err, lockedBy(path))
	}
	errno := error(nil)
	switch code := coded.Code(); {
	case code == sqliteFull:
		errno = syscall.ENOSPC
	case code == sqliteIOErrRead || code == sqliteIOErrShortRead:
	case code&0xff == sqliteIOErr || code&0xff == sqliteCantOpen:
		errno = tryWriting(path)
	}
	if errno == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, errno)
}

// tryWriting writes a block to a file without a name beside the ledger, as far
// behind its beginning as the ledger's files go, and returns the errno of that.
func tryWriting(path string) error {
	end := int64(0)
	for _, name := range []string{path, path + "-wal"} {
		if info, err := os.Stat(name); err == nil {
			end = max(end, info.Size())
		}
	}
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) {
		return nil // the file system has no such files
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Pwrite(fd, make([]byte, block), end)
	return err
}
