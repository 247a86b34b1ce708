package mailbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/fault"
)

// PutResult puts results/<id>.json (AINL-83), whole and on disk, or not at all.
// It never overwrites: when something has the name already, the error wraps
// fs.ErrExist (AINL-85). The mode is subject to the umask. The name itself is
// not synced: whoever has to keep the result keeps its bytes and puts it again.
func (b *Box) PutResult(id envelope.ID, data []byte, mode fs.FileMode) error {
	_, release := b.use()
	defer release()
	err := b.putNameless(resultName(id), data, mode)
	if noTmpfile(err) {
		err = b.putNamed(resultName(id), data, mode)
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

// putNameless writes a file that has no name yet and then gives it one. It does
// without os.File, which doubles the number of system calls: 115 us of processor
// time each instead of 145.
func (b *Box) putNameless(name string, data []byte, mode fs.FileMode) error {
	dir, err := b.openResults()
	if err != nil {
		return err
	}
	defer unix.Close(dir) // nothing was written
	file, err := writeNameless(dir, data, mode)
	if err != nil {
		return err
	}
	defer unix.Close(file) // written and synced, or of no use
	return nameFile(file, dir, name)
}

// writeNameless makes a file without a name, on disk when the error is nil.
func writeNameless(dir int, data []byte, mode fs.FileMode) (file int, err error) {
	if err = fault.Read("write result file"); err == nil {
		file, err = unix.Openat(dir, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, uint32(mode.Perm()))
	}
	if err != nil {
		return -1, os.NewSyscallError("open O_TMPFILE", err)
	}
	if err = os.NewSyscallError("write", writeAll(file, data)); err == nil {
		err = os.NewSyscallError("fdatasync", unix.Fdatasync(file))
	}
	if err != nil {
		unix.Close(file) // it is of no use
		return -1, err
	}
	fault.SyncedAt("result-synced", procPath(file))
	return file, nil
}

// nameFile gives a file that has none a name, unless something has it.
func nameFile(file, dir int, name string) error {
	if err := fault.Read("name result file"); err != nil {
		return os.NewSyscallError("linkat", err)
	}
	err := unix.Linkat(file, "", dir, name, unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.ENOENT) { // for want of a capability, before Linux 6.10; this way costs 5 us more
		err = unix.Linkat(unix.AT_FDCWD, procPath(file), dir, name, unix.AT_SYMLINK_FOLLOW)
	}
	return os.NewSyscallError("linkat", err)
}

func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// writeAll writes what a single write does not take as well.
func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		data = data[max(n, 0):]
	}
	return nil
}

// putNamed does the same by way of a temporary name. It is not in results/,
// so no reader of that directory ever meets it.
func (b *Box) putNamed(name string, data []byte, mode fs.FileMode) (err error) {
	aside := tmpName + "/" + rand.Text()
	file, err := b.root.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode.Perm())
	if err != nil {
		return err
	}
	defer func() {
		file.Close() // written and synced, or of no use
		err = errors.Join(err, b.root.Remove(aside))
	}()
	if _, err := file.Write(data); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	fault.Synced("result-synced", file)
	return b.root.Link(aside, resultsName+"/"+name)
}
