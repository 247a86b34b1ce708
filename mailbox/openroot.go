package mailbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"mailboxd/internal/testtools/fault"
)

// locate creates a missing directory and returns its real path.
func locate(path string) (string, error) {
	if path == "" {
		return "", errors.New("no path given")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if err := makeAll(abs); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// makeAll creates a directory and its missing parents. Their names are on disk when it
// returns nil: the content of a directory is only as durable as its name.
func makeAll(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(path, 0o700) // it exists, or MkdirAll returns the error
	}
	if err := makeAll(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o700); err != nil { // another process may create it too
		return err
	}
	above, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer above.Close()
	if err := above.Sync(); err != nil {
		return err
	}
	fault.Synced("directory-named", above)
	return nil
}

// openRoot opens a directory as a mailbox and creates what is missing, or says why it can't
// be one.
func openRoot(path string) (_ *os.Root, warnings []*UnfitError, err error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			root.Close()
		}
	}()
	if err := refuseSystemDirectory(root, path); err != nil {
		return nil, nil, err
	}
	if warnings, err = checkDirectories(root, path); err != nil {
		return nil, nil, err
	}
	if path == "/tmp" || strings.HasPrefix(path, "/tmp/") {
		warnings = append(warnings, &UnfitError{path + " is under /tmp, where systemd-tmpfiles deletes files after 10 days", `"mailboxd init" proposes a better directory`})
	}
	for _, name := range directories {
		if err := makeDirectory(root, path, name); err != nil {
			return nil, nil, err
		}
	}
	return root, warnings, checkCase(root, path)
}

// directories are those of a mailbox, the root first.
var directories = []string{".", tasksName, resultsName, privateName, tmpName}

// checkDirectories checks the existing directories of a mailbox, and makes nothing.
func checkDirectories(root *os.Root, path string) (warnings []*UnfitError, err error) {
	if err := checkMoved(root, path, "root"); err != nil {
		return nil, err
	}
	for _, name := range directories {
		full := filepath.Join(path, name)
		info, err := root.Stat(name) // follows symlinks that stay inside
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, unusable(full, err)
		}
		warning, unfit := checkAccess(full, info)
		if unfit != nil {
			return nil, unfit
		}
		if warning != nil {
			warnings = append(warnings, warning)
		}
	}
	return warnings, checkCase(root, path)
}

func unusable(path string, err error) error {
	return fmt.Errorf("use %s: %w; move it away: mv %s %s.old", path, err, path, path)
}

// checkCase refuses a results/ that ignores case, since task ids differ by case.
func checkCase(root *os.Root, path string) error {
	if foldsCase(root) {
		return &UnfitError{filepath.Join(path, resultsName) + " does not tell a.json from A.json, and task ids do", "use a file system that does"}
	}
	return nil
}

// refuseSystemDirectory refuses / and the home directory.
func refuseSystemDirectory(root *os.Root, path string) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/" // no home to protect
	}
	for _, sacred := range []string{"/", home} {
		if other, err := os.Stat(sacred); err == nil && os.SameFile(info, other) {
			return fmt.Errorf("%s must not be a mailbox: use a directory of its own, such as %s", path, filepath.Join(home, "mailbox"))
		}
	}
	return nil
}

// makeDirectory makes a missing directory of the mailbox.
func makeDirectory(root *os.Root, path, name string) error {
	if _, err := root.Stat(name); err == nil {
		return nil
	}
	full := filepath.Join(path, name)
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make %s: %w", full, err)
	}
	if _, err := root.Stat(name); err != nil { // perhaps a dangling symlink
		return unusable(full, err)
	}
	return nil
}

// checkAccess says whether other users can write to a directory.
func checkAccess(path string, info fs.FileInfo) (warning, unfit *UnfitError) {
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	switch mode := info.Mode(); {
	case !mode.IsDir():
		return nil, &UnfitError{path + " is not a directory; move it away", fmt.Sprintf("mv %s %s.old", path, path)}
	case owner != os.Geteuid():
		return nil, &UnfitError{fmt.Sprintf("%s belongs to user %d, not to you", path, owner), fmt.Sprintf("chown %d %s, or use another directory", os.Geteuid(), path)}
	case mode.Perm()&0o002 != 0: // a sticky bit doesn't prevent additions
		return nil, &UnfitError{"anybody may write to " + path, "chmod o-w " + path}
	case mode.Perm()&0o020 != 0:
		return &UnfitError{"its group may write to " + path, "chmod g-w " + path}, nil
	}
	return nil, nil
}

// foldsCase reports whether results/ treats a.json and A.json as one file. It doesn't
// write: a case-insensitive file system finds results/ under an upper-case name, and one
// with case folding by directory has a flag.
func foldsCase(root *os.Root) bool {
	lower, err := root.Lstat(resultsName)
	if err != nil {
		return false
	}
	if upper, err := root.Lstat(strings.ToUpper(resultsName)); err == nil && os.SameFile(lower, upper) {
		return true
	}
	dir, err := root.Open(resultsName)
	if err != nil {
		return false
	}
	defer dir.Close()
	const casefold = 0x40000000 // FS_CASEFOLD_FL of linux/fs.h
	flags, err := unix.IoctlGetUint32(int(dir.Fd()), unix.FS_IOC_GETFLAGS)
	return err == nil && flags&casefold != 0
}
