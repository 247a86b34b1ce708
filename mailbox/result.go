package mailbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/fault"
)

// MaxResult is the largest result file, in bytes, that ReadResult reads.
const MaxResult = 64 << 20

const resultSuffix = ".json"

// PutResult puts results/<id>.json (AINL-83), whole and on disk, or not at all.
// It never overwrites: when something has the name already, the error wraps
// fs.ErrExist (AINL-85). The mode is subject to the umask. The name itself is
// not synced: whoever has to keep the result keeps its bytes and puts it again.
func (b *Box) PutResult(id envelope.ID, data []byte, mode fs.FileMode) error {
	root, release := b.use()
	defer release()
	err := putNameless(root, resultName(id), data, mode)
	if noTmpfile(err) {
		err = putNamed(root, resultName(id), data, mode)
	}
	if err != nil {
		return fmt.Errorf("put result %s: %w", id, err)
	}
	return nil
}

func resultName(id envelope.ID) string { return string(id) + resultSuffix }

// noTmpfile reports what file systems and old kernels answer that have no
// O_TMPFILE, and a machine that has no /proc to give the file its name by.
func noTmpfile(err error) bool {
	for _, lack := range []error{unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// putNameless writes a file that has no name yet and then gives it one.
func putNameless(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	dir, err := root.Open(resultsName)
	if err != nil {
		return err
	}
	defer dir.Close()
	at := int(dir.Fd())
	fd, err := unix.Openat(at, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, uint32(mode.Perm()))
	if err != nil {
		return os.NewSyscallError("open O_TMPFILE", err)
	}
	file := os.NewFile(uintptr(fd), resultsName+"/"+name)
	defer file.Close()
	if _, err := file.Write(data); err != nil {
		return err
	}
	if err := unix.Fdatasync(fd); err != nil {
		return os.NewSyscallError("fdatasync", err)
	}
	fault.Synced("result-synced", file)
	err = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), at, name, unix.AT_SYMLINK_FOLLOW)
	return os.NewSyscallError("linkat", err)
}

// putNamed does the same by way of a temporary name. It is not in results/,
// so no reader of that directory ever meets it.
func putNamed(root *os.Root, name string, data []byte, mode fs.FileMode) (err error) {
	aside := tmpName + "/" + rand.Text()
	file, err := root.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode.Perm())
	if err != nil {
		return err
	}
	defer func() {
		file.Close() // written and synced, or of no use
		err = errors.Join(err, root.Remove(aside))
	}()
	if _, err := file.Write(data); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	fault.Synced("result-synced", file)
	return root.Link(aside, resultsName+"/"+name)
}

// ReadResult returns what stands in results/<id>.json, whoever put it there.
// The error wraps fs.ErrNotExist when nothing does. A symlink that stays in the
// mailbox is followed, as AINL's read_result does.
func (b *Box) ReadResult(id envelope.ID) ([]byte, fs.FileInfo, error) {
	root, release := b.use()
	defer release()
	return readResult(root, id)
}

// ReadResult is Box.ReadResult for who only reads the mailbox at root: it
// makes nothing and locks nothing.
func ReadResult(root string, id envelope.ID) ([]byte, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("read result %s: %w", id, err)
	}
	defer dir.Close()
	data, _, err := readResult(dir, id)
	return data, err
}

func readResult(root *os.Root, id envelope.ID) ([]byte, fs.FileInfo, error) {
	file, err := root.OpenFile(resultsName+"/"+resultName(id), os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO must not keep us
	if err != nil {
		return nil, nil, fmt.Errorf("read result %s: %w", id, err)
	}
	defer file.Close()
	data, info, err := readRegular(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read result %s: %w", id, err)
	}
	return data, info, nil
}

func readRegular(file *os.File) ([]byte, fs.FileInfo, error) {
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, errors.New("not a regular file")
	case info.Size() > MaxResult:
		return nil, nil, fmt.Errorf("%d bytes are more than %d", info.Size(), MaxResult)
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxResult))
	return data, info, err
}

// StatResult describes what has the name results/<id>.json, without following a
// symlink. The error wraps fs.ErrNotExist when nothing does.
func (b *Box) StatResult(id envelope.ID) (fs.FileInfo, error) {
	root, release := b.use()
	defer release()
	info, err := root.Lstat(resultsName + "/" + resultName(id))
	if err != nil {
		return nil, fmt.Errorf("stat result %s: %w", id, err)
	}
	return info, nil
}

// HasResult reports whether anything has the name results/<id>.json.
func (b *Box) HasResult(id envelope.ID) bool {
	_, err := b.StatResult(id)
	return err == nil
}

// HaveResults is HasResult for many ids, in their order, at a third of the cost.
func (b *Box) HaveResults(ids []envelope.ID) []bool {
	have := make([]bool, len(ids))
	root, release := b.use()
	defer release()
	dir, err := root.Open(resultsName)
	if err != nil {
		return have
	}
	defer dir.Close()
	var stat unix.Stat_t
	for i, id := range ids {
		have[i] = unix.Fstatat(int(dir.Fd()), resultName(id), &stat, unix.AT_SYMLINK_NOFOLLOW) == nil
	}
	return have
}

// RemoveResult removes results/<id>.json, for good when it returns nil: a power
// cut does not bring it back. That there is none is fine.
func (b *Box) RemoveResult(id envelope.ID) error {
	root, release := b.use()
	defer release()
	if err := removeResult(root, resultName(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove result %s: %w", id, err)
	}
	return nil
}

func removeResult(root *os.Root, name string) error {
	dir, err := root.Open(resultsName)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := root.Remove(resultsName + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fault.Removed(dir, name)
	if err := dir.Sync(); err != nil { // also when it was gone: who removed it may have been killed before this
		return err
	}
	fault.Synced("removal-synced", dir)
	return nil
}
