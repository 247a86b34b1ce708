package gitfiles

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxFile limits what is read of a file that git obeys; of a larger one, its size and time
// count too. maxHooks limits the hooks in a directory.
const (
	maxFile  = 1 << 20
	maxHooks = 1000
)

// stateOf describes a file, a directory of hooks, or a symbolic link. Equal descriptions mean
// that git does the same. It is "" for what is absent, and for a directory without hooks.
func stateOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	if info.Mode()&os.ModeSymlink == 0 {
		return targetState(path, info)
	}
	target, _ := os.Readlink(path) // "" is as good
	resolved, err := filepath.EvalSymlinks(path)
	if err == nil {
		info, err = os.Lstat(resolved)
	}
	if err != nil {
		return fmt.Sprintf("broken link %q", target)
	}
	return fmt.Sprintf("link %q: %s", target, targetState(resolved, info))
}

func targetState(path string, info os.FileInfo) string {
	switch {
	case info.IsDir():
		return hooksState(path)
	case info.Mode().IsRegular():
		return fileState(path, info)
	}
	return "special file " + info.Mode().String()
}

func fileState(path string, info os.FileInfo) string {
	text, err := readRegular(path, maxFile)
	if err != nil {
		return "file that can't be read"
	}
	state := fmt.Sprintf("file %o %x", info.Mode().Perm()&0o111, sha256.Sum256(text))
	if info.Size() > maxFile {
		state += fmt.Sprint(" ", info.Size(), info.ModTime().UnixNano())
	}
	return state
}

// hooksState describes the hooks in a directory: all files but examples.
func hooksState(dir string) string {
	names, err := os.ReadDir(dir)
	if err != nil {
		return "directory that can't be read"
	}
	hash, count := sha256.New(), 0
	for _, e := range names {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if err != nil || info.IsDir() || strings.HasSuffix(e.Name(), ".sample") {
			continue
		}
		if count++; count > maxHooks {
			continue
		}
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			fmt.Fprintf(hash, "%q %q\n", e.Name(), targetState(resolved, info))
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("directory %d %x", count, hash.Sum(nil))
}

// entryState describes a .git: a git directory, or a file or a link that names one. The content
// of a git directory changes with each commit.
func entryState(path string) string {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return "repository"
	}
	state := stateOf(path)
	if info.Mode()&os.ModeSymlink != 0 {
		target, _ := os.Readlink(path) // "" is as good
		state = fmt.Sprintf("link %q", target)
	}
	return state
}

// kind is the first word of a description.
func kind(state string) string {
	word, _, _ := strings.Cut(state, " ")
	return word
}

// readRegular reads the beginning of a regular file, and waits for nothing.
func readRegular(path string, most int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	return io.ReadAll(io.LimitReader(file, most))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
