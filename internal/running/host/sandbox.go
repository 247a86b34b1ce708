package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"mailboxd/internal/sandboxing/sandbox"
)

// systemPaths are what every sandbox may read. The rest of the root directory isn't there.
var systemPaths = []string{"/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// SystemPaths returns the paths of the system for a sandbox, and the files and directories of /etc
// to mask in it: what others than root may not read, since root in a sandbox is its owner, too.
// For other users, the permissions hold.
func SystemPaths() (paths []sandbox.Path, masked sandbox.Masked) {
	for _, path := range systemPaths {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		p := sandbox.Path{Name: path, Real: path}
		if info.Mode()&os.ModeSymlink != 0 {
			if p.Real, err = os.Readlink(path); err != nil {
				continue
			}
		}
		paths = append(paths, p)
	}
	if os.Getuid() == 0 {
		masked = closedToOthers("/etc")
	}
	return paths, masked
}

// closedToOthers lists what others than the owner and the group may not read below a directory.
func closedToOthers(dir string) (masked sandbox.Masked) {
	const read, enter = 0o004, 0o001
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is gone
		}
		info, err := e.Info()
		switch {
		case err != nil: // it is gone
		case e.IsDir() && info.Mode()&enter == 0:
			masked.Dirs = append(masked.Dirs, path)
			return fs.SkipDir
		case e.Type().IsRegular() && info.Mode()&read == 0:
			masked.Files = append(masked.Files, path)
		}
		return nil
	})
	return masked
}

// Bubblewrap is the program that makes sandboxes.
type Bubblewrap struct {
	Path   string // absolute
	ByName bool   // it is older than its options for descriptors
}

var bubblewrap struct {
	mu    sync.Mutex
	found Bubblewrap
}

// FindBubblewrap finds bubblewrap once, and tries it. A machine without it is searched again,
// since it may be installed later.
func FindBubblewrap() (Bubblewrap, error) {
	bubblewrap.mu.Lock()
	defer bubblewrap.mu.Unlock()
	if bubblewrap.found.Path != "" {
		return bubblewrap.found, nil
	}
	path, err := exec.LookPath("bwrap")
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return Bubblewrap{}, errors.New("bwrap is not on the PATH of mailboxd; install the package bubblewrap")
	}
	found, err := tryBubblewrap(path)
	if err == nil {
		bubblewrap.found = found
	}
	return found, err
}

// tryBubblewrap checks the version of a bubblewrap, and has it make a sandbox.
func tryBubblewrap(path string) (Bubblewrap, error) {
	const timeout = 5 * time.Second
	ctx, stop := context.WithTimeout(context.Background(), timeout)
	defer stop()
	text, err := output(ctx, path, "--version")
	if err != nil {
		return Bubblewrap{}, fmt.Errorf("run %s --version: %w", path, err)
	}
	if err := checkVersion(text); err != nil {
		return Bubblewrap{}, fmt.Errorf("%s: %w", path, err)
	}
	help, err := output(ctx, path, "--help")
	if err != nil {
		return Bubblewrap{}, fmt.Errorf("run %s --help: %w", path, err)
	}
	// A sandbox without files of its own shows whether the kernel allows any.
	if _, err := output(ctx, path, "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true"); err != nil {
		return Bubblewrap{}, fmt.Errorf("%s makes no sandbox here: %w; mailboxd doctor says why", path, err)
	}
	return Bubblewrap{Path: path, ByName: !strings.Contains(help, "--ro-bind-fd")}, nil
}

// output returns what a program prints. The error has it, too.
func output(ctx context.Context, path string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second // for what it left in the background
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return text, err
}

// oldestVersion is the oldest bubblewrap that mailboxd was tried with.
var oldestVersion = [3]int{0, 8, 0}

// checkVersion returns an error unless a line such as "bubblewrap 0.8.0" names a version that
// isn't too old. An unreadable version counts as too old.
func checkVersion(line string) error {
	const needed = "mailboxd needs bubblewrap 0.8.0 or later; install a newer package bubblewrap"
	name, version, _ := strings.Cut(line, " ")
	var found [3]int
	fields := strings.Split(version, ".")
	for i := range found {
		if i >= len(fields) || name != "bubblewrap" {
			return fmt.Errorf("its version cannot be read from %.80q: %s", line, needed)
		}
		digits := fields[i]
		if i == len(found)-1 { // a distribution may add letters
			digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n < 0 {
			return fmt.Errorf("its version cannot be read from %.80q: %s", line, needed)
		}
		found[i] = n
	}
	if slices.Compare(found[:], oldestVersion[:]) < 0 {
		return fmt.Errorf("version %s is too old: %s", version, needed)
	}
	return nil
}
