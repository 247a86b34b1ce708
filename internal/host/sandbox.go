package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mailboxd/internal/sandbox"
)

// systemPaths are what every sandbox may read. The rest of the root directory isn't there.
var systemPaths = []string{"/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// secretFiles are files of the system that root, and nobody else, may read. Root in a sandbox
// may not.
var secretFiles = []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-"}

// SystemPaths returns the paths of the system for a sandbox, and the files to mask in it.
func SystemPaths() (paths []sandbox.Path, masked []string) {
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
	for _, path := range secretFiles {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			masked = append(masked, path)
		}
	}
	return paths, masked
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
	const timeout = 5 * time.Second
	ctx, stop := context.WithTimeout(context.Background(), timeout)
	defer stop()
	help, err := exec.CommandContext(ctx, path, "--help").CombinedOutput()
	if err != nil {
		return Bubblewrap{}, fmt.Errorf("run %s --help: %w: %s", path, err, strings.TrimSpace(string(help)))
	}
	// The smallest sandbox shows whether the kernel allows any.
	smallest := exec.CommandContext(ctx, path, "--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--", "true")
	if out, err := smallest.CombinedOutput(); err != nil {
		return Bubblewrap{}, fmt.Errorf("%s makes no sandbox here: %w: %s; mailboxd doctor says why", path, err, strings.TrimSpace(string(out)))
	}
	bubblewrap.found = Bubblewrap{Path: path, ByName: !strings.Contains(string(help), "--ro-bind-fd")}
	return bubblewrap.found, nil
}
