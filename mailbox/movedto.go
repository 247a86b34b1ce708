package mailbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// movedName is the file that says where a mailbox or a state directory was moved to. It is there
// while the old files are removed, and stays if some can't be.
const movedName = ".moved-to"

// IsMovedMark reports whether a name of a directory is that of MarkMoved.
func IsMovedMark(name string) bool { return name == movedName }

// MarkMoved notes in a mailbox or a state directory that it was moved. Open and OpenState then
// refuse the directory: it would begin again with an empty history.
func MarkMoved(dir, to string) error {
	path := filepath.Join(dir, movedName)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("note that %s was moved: %w", dir, err)
	}
	_, err = file.WriteString(to + "\n")
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("note that %s was moved: %w", dir, err)
	}
	return syncDir(dir)
}

// UnmarkMoved removes the note of MarkMoved.
func UnmarkMoved(dir string) error { return os.Remove(filepath.Join(dir, movedName)) }

// IsMoved reports whether a directory has the note of MarkMoved.
func IsMoved(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, movedName))
	return err == nil
}

// maxMoved limits the size of the note: anybody may write to a mailbox.
const maxMoved = 8 << 10

// checkMoved refuses a directory that was moved. What isn't a small file is no note.
func checkMoved(root *os.Root, path, key string) error {
	info, err := root.Lstat(movedName)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxMoved {
		return nil
	}
	text, err := root.ReadFile(movedName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Join(path, movedName), err)
	}
	to := strings.TrimSuffix(string(text), "\n")
	return &UnfitError{
		fmt.Sprintf("%s was moved to %s, and only some of its old files are left", path, to),
		fmt.Sprintf("set %s: %s; to begin anew here, first remove %s", key, to, path),
	}
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
