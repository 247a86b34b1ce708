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

	"mailboxd/internal/fault"
)

// locate makes the directory when it is missing and returns where it really is.
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

// makeAll makes a directory and those above it that are missing. Their names
// are on disk when it returns nil: nothing in a directory is safer than it.
func makeAll(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(path, 0o700) // it is there, or the error says what is instead
	}
	if err := makeAll(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o700); err != nil { // somebody else may make it as well
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

// enter opens the directory as a mailbox, or says why it cannot be one.
func enter(path string) (_ *os.Root, warnings []string, err error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			root.Close()
		}
	}()
	if err := notSacred(root, path); err != nil {
		return nil, nil, err
	}
	if path == "/tmp" || strings.HasPrefix(path, "/tmp/") {
		warnings = append(warnings, path+` is under /tmp, where systemd-tmpfiles deletes what is 10 days old: "mailboxd init" proposes a better place`)
	}
	for _, name := range []string{".", tasksName, resultsName, privateName, tmpName} {
		warning, err := furnish(root, path, name)
		if err != nil {
			return nil, nil, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
	}
	if foldsCase(root) {
		return nil, nil, fmt.Errorf("%s does not tell a.json from A.json, and task ids do: use a file system that does", filepath.Join(path, resultsName))
	}
	return root, warnings, nil
}

// notSacred refuses the two directories that are somebody's everything.
func notSacred(root *os.Root, path string) error {
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

// furnish makes one directory of the mailbox when it is missing, and judges it.
func furnish(root *os.Root, path, name string) (warning string, err error) {
	full := filepath.Join(path, name)
	info, err := root.Stat(name) // follows symlinks that stay inside
	if errors.Is(err, fs.ErrNotExist) {
		if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("make %s: %w", full, err)
		}
		info, err = root.Stat(name)
	}
	if err != nil {
		return "", fmt.Errorf("use %s: %w; move it away: mv %s %s.old", full, err, full, full)
	}
	return judge(full, info)
}

// judge says whether others can meddle with a directory of ours.
func judge(path string, info fs.FileInfo) (warning string, err error) {
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	switch mode := info.Mode(); {
	case !mode.IsDir():
		return "", fmt.Errorf("%s is not a directory; move it away: mv %s %s.old", path, path, path)
	case owner != os.Geteuid():
		return "", fmt.Errorf("%s belongs to user %d, not to you: chown %d %s, or use another directory", path, owner, os.Geteuid(), path)
	case mode.Perm()&0o002 != 0: // a sticky bit does not keep anybody from adding
		return "", fmt.Errorf("anybody may write to %s: chmod o-w %s", path, path)
	case mode.Perm()&0o020 != 0:
		return fmt.Sprintf("its group may write to %s: chmod g-w %s", path, path), nil
	}
	return "", nil
}

// foldsCase reports whether results/ takes a.json and A.json for one file. It
// looks without writing: a file system that folds finds our own directory under
// another name, and one that folds by directory marks it.
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
