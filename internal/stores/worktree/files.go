package worktree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// An UnsafeError says that git must not look at a clone: it would wait for a pipe, or read a
// file without end. Only somebody who wants that makes such files.
type UnsafeError struct{ Path, Reason string }

func (e *UnsafeError) Error() string {
	return fmt.Sprintf("%s: %s, so git does not look at the files", plain(e.Path), e.Reason)
}

// checkFiles returns an *UnsafeError if git would read a pipe or a device in the working tree:
// a .gitignore or .gitattributes, or a file of a nested repository. Git opens those of every
// directory, and reads HEAD and references of nested repositories without a limit.
func checkFiles(top string) error {
	return filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission) && path != top:
			return nil // git cannot read it either
		case err != nil:
			return fmt.Errorf("look at the files: %w", err)
		case d.Name() == ".gitignore" || d.Name() == ".gitattributes" || d.Name() == ".gitmodules":
			return checkRegular(path)
		case d.Name() != ".git":
			return nil
		case filepath.Dir(path) != top: // git does not read the one of the clone itself
			err = checkNested(path)
		}
		if err == nil && d.IsDir() {
			err = fs.SkipDir
		}
		return err
	})
}

// checkRegular refuses a pipe, a socket or a device, also behind a symbolic link.
func checkRegular(path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return &UnsafeError{path, "it is neither a file nor a directory"}
	}
	return nil
}

// maxGitFile limits the files of nested repositories, besides their objects. Git reads at most
// a file .git of this length.
const maxGitFile = 1 << 20

// checkNested checks the .git of a nested repository: a directory, or a file that names one.
func checkNested(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // git sees none either
	}
	if info.IsDir() {
		return checkGitDir(path, true)
	}
	return checkTarget(path, "gitdir: ", true)
}

// checkTarget checks the git directory that a file names, if it names one.
func checkTarget(path, prefix string, common bool) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil
	case !info.Mode().IsRegular() || info.Size() > maxGitFile:
		return &UnsafeError{path, "it is no short file"}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	dir, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), prefix)
	if !ok {
		return nil
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(path), dir)
	}
	return checkGitDir(dir, common)
}

// checkGitDir refuses a git directory in which HEAD, a reference or another file beside them is
// no short file. With common, it checks the directory that commondir names too. Git reads
// neither objects nor hooks to find the commit of a nested repository.
func checkGitDir(dir string, common bool) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("look at nested repository: %w", err)
		case d.IsDir() && (d.Name() == "objects" || d.Name() == "hooks"):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		info, err := os.Stat(path)
		inRefs := isBelow(path, filepath.Join(dir, "refs"))
		switch {
		case err != nil, info.IsDir() && !inRefs:
			return nil
		case !info.Mode().IsRegular() || info.Size() > 64*maxGitFile:
			return &UnsafeError{path, "a nested repository has something else than a short file there"}
		}
		return nil
	})
	if err != nil || !common {
		return err
	}
	return checkTarget(filepath.Join(dir, "commondir"), "", false)
}

func isBelow(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
