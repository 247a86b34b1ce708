package mailbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/testtools/fault"
)

// MaxResult is the largest result file, in bytes, that ReadResult reads.
const MaxResult = 64 << 20

const resultSuffix = ".json"

// ReadResult returns the content of results/<id>.json from any writer. The error wraps
// fs.ErrNotExist if there is none. It follows a symlink that stays in the mailbox, as
// AINL's read_result does.
func (b *Box) ReadResult(id envelope.ID) ([]byte, fs.FileInfo, error) {
	root, release := b.use()
	defer release()
	return readResult(root, id)
}

// ReadResult is Box.ReadResult for a program that only reads the mailbox at root: it
// creates and locks nothing.
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
	file, err := (*os.File)(nil), fault.Read("result file")
	if err == nil {
		file, err = root.OpenFile(resultsName+"/"+resultName(id), os.O_RDONLY|unix.O_NONBLOCK, 0) // a FIFO must not block
	}
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

// openResults is openDir of results/, for system calls. The caller closes it before it
// releases b.
func (b *Box) openResults() (fd int, err error) { return b.openDir(resultsName, unix.O_PATH) }

// StatResult describes the file results/<id>.json, without following a symlink. The error
// wraps fs.ErrNotExist if there is none.
func (b *Box) StatResult(id envelope.ID) (fs.FileInfo, error) {
	root, release := b.use()
	defer release()
	info, err := root.Lstat(resultsName + "/" + resultName(id))
	if err != nil {
		return nil, fmt.Errorf("stat result %s: %w", id, err)
	}
	return info, nil
}

// HasResult reports whether results/<id>.json exists.
func (b *Box) HasResult(id envelope.ID) bool { return b.HaveResults([]envelope.ID{id})[0] }

// HaveResults is HasResult for many ids, in their order, at a third of the cost.
func (b *Box) HaveResults(ids []envelope.ID) []bool {
	have := make([]bool, len(ids))
	if len(ids) == 0 {
		return have
	}
	_, release := b.use()
	defer release()
	dir, err := b.openResults()
	if err != nil {
		return have
	}
	defer unix.Close(dir) // nothing was written
	var stat unix.Stat_t
	for i, id := range ids {
		have[i] = unix.Fstatat(dir, resultName(id), &stat, unix.AT_SYMLINK_NOFOLLOW) == nil
	}
	return have
}

// RemoveResult removes results/<id>.json durably. A missing file is no error.
func (b *Box) RemoveResult(id envelope.ID) error {
	root, release := b.use()
	defer release()
	if err := removeResult(root, resultName(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove result %s: %w", id, err)
	}
	return nil
}

// RemoveThisResult is RemoveResult for the file that StatResult described. It does nothing
// if another file has the name, or the file was written since. It reports whether the name
// is free.
func (b *Box) RemoveThisResult(id envelope.ID, was fs.FileInfo) (gone bool, err error) {
	root, release := b.use()
	defer release()
	now, err := root.Lstat(resultsName + "/" + resultName(id))
	if err == nil && (!os.SameFile(now, was) || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime())) {
		return false, nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = removeResult(root, resultName(id))
	}
	if err != nil {
		return false, fmt.Errorf("remove result %s: %w", id, err)
	}
	return true, nil
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
	if err := dir.Sync(); err != nil { // also if it was gone: the remover may have been killed before this
		return err
	}
	fault.Synced("removal-synced", dir)
	return nil
}
