package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"mailboxd/internal/testtools/fault"
)

// output holds the descriptors of a run's output files. The process writes to the files,
// never to pipes: nothing fills up, and a process that keeps them open blocks no reader.
type output struct {
	stdout, stderr int
}

// createOutput creates both files. They must not exist before, because their existence
// shows that the run may have begun.
func createOutput(dir string) (output, error) {
	stdout, err := createOutputFile(dir, StdoutFile)
	if err != nil {
		return output{}, fmt.Errorf("create output: %w", err)
	}
	stderr, err := createOutputFile(dir, StderrFile)
	if err != nil {
		unix.Close(stdout)
		_ = os.Remove(inDir(dir, StdoutFile))
		return output{}, fmt.Errorf("create output: %w", err)
	}
	return output{stdout, stderr}, nil
}

// createOutputFile creates an output file in append mode, so that several writers don't
// overwrite each other and a truncated file has no hole.
func createOutputFile(dir, name string) (int, error) {
	if err := fault.Read("create " + name); err != nil {
		return -1, err
	}
	return open(inDir(dir, name), unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_EXCL)
}

// Void reports whether nothing was started in a run directory, and prevents a later start,
// also by a keeper that hasn't read its request yet. A void directory stays void. A missing
// directory isn't void: it is made before the intent to run, so its earlier content is
// unknown.
func Void(dir string) bool {
	path := inDir(dir, StdoutFile)
	err := os.Mkdir(path, 0o700) // prevents the creation of output
	if errors.Is(err, fs.ErrExist) {
		info, err := os.Lstat(path)
		return err == nil && info.IsDir()
	}
	return err == nil
}

func (o output) close() {
	for _, fd := range o.files() {
		unix.Close(fd) // nothing was written, so nothing can be lost
	}
}

// remove removes the files of a run that did not begin.
func (o output) remove(dir string) {
	o.close()
	for _, name := range []string{StdoutFile, StderrFile} {
		_ = os.Remove(inDir(dir, name)) // an empty file does no harm
	}
}

func (o output) files() [2]int { return [2]int{o.stdout, o.stderr} }

// size returns the bytes in both files, and in the larger one.
func (o output) size() (sum, largest int64) {
	for _, fd := range o.files() {
		n := length(fd)
		sum += n
		largest = max(largest, n)
	}
	return sum, largest
}

// cut truncates files that are longer than limit bytes, and reports whether there was one.
// Zero is no limit.
func (o output) cut(limit int64) bool {
	if limit <= 0 {
		return false
	}
	found := false
	for _, fd := range o.files() {
		if length(fd) > limit {
			found = true
			_ = unix.Ftruncate(fd, limit) // on an error, a too long file does no harm
		}
	}
	return found
}

// cutAnswer truncates the answer file, if it is a regular file.
func cutAnswer(path string, limit int64) bool {
	if limit <= 0 || answerSize(path) <= limit {
		return false
	}
	if fd, err := open(path, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK); err == nil {
		_ = unix.Ftruncate(fd, limit) // on an error, a too long file does no harm
		unix.Close(fd)
	}
	return true
}

// answerSize returns the size of the answer file; 0 if there is none, or it isn't a regular
// file.
func answerSize(path string) int64 {
	var file unix.Stat_t
	if path == "" || unix.Lstat(path, &file) != nil || file.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0
	}
	return file.Size
}

// length returns the size of an open file.
func length(fd int) int64 {
	var file unix.Stat_t
	if unix.Fstat(fd, &file) != nil {
		return 0
	}
	return file.Size
}
