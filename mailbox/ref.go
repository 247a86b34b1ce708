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

// ErrOutside says that a reference leads outside every directory for files of tasks.
var ErrOutside = errors.New("leads outside the directories that tasks may name files in")

// ErrNotRegular says that a file must be regular, but is a directory, symlink, FIFO or
// device.
var ErrNotRegular = errors.New("not a regular file")

// CheckRef says why a task's reference can't be used; nil if it can (AINL-40). file://X is
// the path X in the first of the mailbox and roots that has it, so file://examples/a.lang
// has no host; file:///X is an absolute path inside one of them. The error wraps
// ErrOutside, ErrNotRegular or fs.ErrNotExist, or is the error of a system call. CheckRef
// accepts other schemes, and references without one, unchecked. It never opens the file, so
// a large file or a FIFO costs nothing.
func (b *Box) CheckRef(uri string, roots []string) error {
	_, err := b.FindRef(uri, roots)
	return err
}

// FindRef returns the path of a task's reference without symbolic links, if CheckRef accepts
// it; "" for other schemes, and references without one.
func (b *Box) FindRef(uri string, roots []string) (string, error) {
	path, ok := filePath(uri)
	if !ok {
		return "", nil
	}
	found := ""
	within, err := resolveAll(append([]string{b.path}, roots...))
	if err == nil {
		found, err = find(path, within)
	}
	if plain, bad := url.PathUnescape(path); errors.Is(err, fs.ErrNotExist) && bad == nil && plain != path {
		found, err = find(plain, within) // as other programs may read it
	}
	if err != nil {
		return "", fmt.Errorf("check reference: %w", err)
	}
	return found, nil
}

// ErrTooLarge says that a referenced file is larger than MaxRef.
var ErrTooLarge = errors.New("is too large")

// MaxRef is the largest referenced file that is read, in bytes.
const MaxRef = 64 << 20

// SumRef returns the hex SHA-256 of a referenced file, a path or a URI, which it finds as
// CheckRef does. It doesn't fetch other URIs: the error wraps fs.ErrNotExist. For other
// errors see CheckRef. A file beyond MaxRef gives ErrTooLarge.
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

// sumFile hashes a regular file. It checks the file that it has opened.
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

// filePath returns the path of a file URI, also of file:X without slashes.
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
		if resolved[i], err = Resolve(path); err != nil {
			return nil, err
		}
	}
	return resolved, nil
}

// find returns the real path of a file; a relative path is in the first of the roots that
// has it.
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
		// Not Join: a ".." after a symlink has another meaning.
		if at, err := stand(root+"/"+path, roots); !errors.Is(err, fs.ErrNotExist) {
			return at, err
		}
	}
	return "", fs.ErrNotExist
}

// reach returns the target of an absolute path whose end can't be read.
func reach(path string) string {
	for at := path; at != ""; at = at[:strings.LastIndexByte(at, '/')] {
		if resolved, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(resolved, path[len(at):])
		}
	}
	return filepath.Clean(path)
}

// stand returns the real path of the regular file at an absolute path, or why there is none
// in the roots.
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
