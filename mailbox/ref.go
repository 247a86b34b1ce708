package mailbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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
		_, err = find(path, within)
	}
	if plain, bad := url.PathUnescape(path); errors.Is(err, fs.ErrNotExist) && bad == nil && plain != path {
		_, err = find(plain, within) // as others may read it
	}
	if err != nil {
		return fmt.Errorf("check reference: %w", err)
	}
	return nil
}

// ErrTooLarge says that a file is more than we read of a reference.
var ErrTooLarge = errors.New("is too large")

// MaxRef is how much of a file that a reference names is read, in bytes.
const MaxRef = 64 << 20

// SumRef returns the hex SHA-256 of what a reference names, a path or a URI, as
// CheckRef finds it. What is no file is not fetched and wraps fs.ErrNotExist; for
// other errors see CheckRef. More than MaxRef wraps ErrTooLarge.
func (b *Box) SumRef(ref string, roots []string) (sum string, err error) {
	if !strings.Contains(ref, ":") {
		ref = "file://" + ref
	}
	path, ok := filePath(ref)
	if !ok {
		return "", fmt.Errorf("read reference: %w here: it is not fetched", fs.ErrNotExist)
	}
	within, err := resolveAll(append([]string{b.path}, roots...))
	if err == nil {
		path, err = find(path, within)
	}
	if err == nil {
		sum, err = sumFile(path)
	}
	if err != nil {
		return "", fmt.Errorf("read reference: %w", err)
	}
	return sum, nil
}

// sumFile hashes a regular file, also when another one takes its place.
func sumFile(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", ErrNotRegular
	case info.Size() > MaxRef:
		return "", ErrTooLarge
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, MaxRef+1))
	if err == nil && n > MaxRef {
		err = ErrTooLarge
	}
	return hex.EncodeToString(h.Sum(nil)), err
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

// find returns where the file is, in the first of the roots that has it if its
// path is relative.
func find(path string, roots []string) (string, error) {
	switch {
	case len(path) >= unix.PathMax:
		return "", unix.ENAMETOOLONG
	case strings.HasPrefix(path, "/"):
		return stand(path, roots)
	case path != "" && !filepath.IsLocal(path):
		return "", ErrOutside
	}
	for _, root := range roots {
		// Not Join: a ".." behind a symlink is not what it seems to be.
		if at, err := stand(root+"/"+path, roots); !errors.Is(err, fs.ErrNotExist) {
			return at, err
		}
	}
	return "", fs.ErrNotExist
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

// stand returns where the regular file at an absolute path is, or says why there
// is none in the roots.
func stand(path string, roots []string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved = reach(path)
	}
	if !slices.ContainsFunc(roots, func(root string) bool { return inside(resolved, root) }) {
		return "", ErrOutside
	}
	if err != nil {
		return "", err
	}
	info, err := os.Lstat(resolved)
	if err == nil && !info.Mode().IsRegular() {
		return "", ErrNotRegular
	}
	return resolved, err
}
