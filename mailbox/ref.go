package mailbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrOutside says that a reference leads out of every directory in which the
// files named by tasks may lie.
var ErrOutside = errors.New("leads outside the directories that tasks may name files in")

// ErrNotRegular says that something is a directory, a symlink, a FIFO or a
// device where only a file will do.
var ErrNotRegular = errors.New("not a regular file")

// CheckRef says why a reference of a task cannot be used, or nil (AINL-40).
// file://X is the path X in the first of the mailbox and roots that has it,
// so file://examples/a.lang has no host; file:///X is an absolute path, which
// must lie in one of them. The error wraps ErrOutside, ErrNotRegular or
// fs.ErrNotExist, or says what else keeps the file from being looked at. Other
// schemes, and what has none, are not ours to judge. Nothing is ever opened,
// so it costs nothing that a file is large, or a FIFO.
func (b *Box) CheckRef(uri string, roots []string) error {
	path, ok := filePath(uri)
	if !ok {
		return nil
	}
	within, err := resolveAll(append([]string{b.path}, roots...))
	if err == nil {
		err = find(path, within)
	}
	if plain, bad := url.PathUnescape(path); errors.Is(err, fs.ErrNotExist) && bad == nil && plain != path {
		err = find(plain, within) // as others may read it
	}
	if err != nil {
		return fmt.Errorf("check reference: %w", err)
	}
	return nil
}

// filePath returns what a file URI names; also file:X, without slashes.
func filePath(uri string) (string, bool) {
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok || !strings.EqualFold(scheme, "file") {
		return "", false
	}
	return strings.TrimPrefix(rest, "//"), true
}

func resolveAll(paths []string) ([]string, error) {
	resolved := make([]string, len(paths))
	for i, path := range paths {
		var err error
		if resolved[i], err = resolve(path); err != nil {
			return nil, err
		}
	}
	return resolved, nil
}

// find looks for the file, in the roots in their order if its path is relative.
func find(path string, roots []string) error {
	switch {
	case len(path) >= unix.PathMax:
		return unix.ENAMETOOLONG
	case strings.HasPrefix(path, "/"):
		return stand(path, roots)
	case path != "" && !filepath.IsLocal(path):
		return ErrOutside
	}
	for _, root := range roots {
		// Not Join: a ".." behind a symlink is not what it seems to be.
		if err := stand(root+"/"+path, roots); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fs.ErrNotExist
}

// reach returns where an absolute path leads whose end cannot be looked at.
func reach(path string) string {
	for at := path; at != ""; at = at[:strings.LastIndexByte(at, '/')] {
		if resolved, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(resolved, path[len(at):])
		}
	}
	return filepath.Clean(path)
}

// stand says why there is no regular file at an absolute path in the roots.
func stand(path string, roots []string) error {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved = reach(path)
	}
	if !slices.ContainsFunc(roots, func(root string) bool { return inside(resolved, root) }) {
		return ErrOutside
	}
	if err != nil {
		return err
	}
	info, err := os.Lstat(resolved)
	if err == nil && !info.Mode().IsRegular() {
		return ErrNotRegular
	}
	return err
}
