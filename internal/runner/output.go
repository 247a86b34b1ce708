package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"mailboxd/internal/fault"
)

// output is what a run writes, as descriptors. The process has the files
// themselves, never pipes of ours: nothing can fill up, and nobody who keeps
// them open can make us wait.
type output struct {
	stdout, stderr int
}

// createOutput makes both files. That they exist tells a later reader that the
// run may have begun; so they must not exist before.
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

// createOutputFile makes one of both files. It appends, so that several writers mix
// lines instead of overwriting them and a file that is cut short has no hole.
func createOutputFile(dir, name string) (int, error) {
	if err := fault.Read("create " + name); err != nil {
		return -1, err
	}
	return open(inDir(dir, name), unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_EXCL)
}

// Void reports whether nothing was started in the run directory, and sees to it
// that nothing ever is: also not by a keeper that has yet to read that it
// should. Once void, a directory stays so. One that is gone is not void: it is
// made before the intent to run, so nobody knows what it held.
func Void(dir string) bool {
	path := inDir(dir, StdoutFile)
	err := os.Mkdir(path, 0o700) // no output can be made then
	if errors.Is(err, fs.ErrExist) {
		info, err := os.Lstat(path)
		return err == nil && info.IsDir()
	}
	return err == nil
}

func (o output) close() {
	for _, fd := range o.files() {
		unix.Close(fd) // we have written nothing, so there is nothing to lose
	}
}

// remove takes back what was made in dir for a run that did not begin.
func (o output) remove(dir string) {
	o.close()
	for _, name := range []string{StdoutFile, StderrFile} {
		_ = os.Remove(inDir(dir, name)) // an empty file too many harms nobody
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

// cut shortens files that are longer than limit bytes and reports whether
// there was one. A limit of zero is none.
func (o output) cut(limit int64) bool {
	if limit <= 0 {
		return false
	}
	found := false
	for _, fd := range o.files() {
		if length(fd) > limit {
			found = true
			_ = unix.Ftruncate(fd, limit) // or it stays too long, which harms no reader
		}
	}
	return found
}

// cutAnswer is cut for the file that holds the answer, if that is one.
func cutAnswer(path string, limit int64) bool {
	if limit <= 0 || answerSize(path) <= limit {
		return false
	}
	if fd, err := open(path, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK); err == nil {
		_ = unix.Ftruncate(fd, limit) // or it stays too long, which harms no reader
		unix.Close(fd)
	}
	return true
}

// answerSize is the size of the file that holds the answer; 0 when there is none,
// or it is no regular file.
func answerSize(path string) int64 {
	var file unix.Stat_t
	if path == "" || unix.Lstat(path, &file) != nil || file.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0
	}
	return file.Size
}

// length is the size of an open file.
func length(fd int) int64 {
	var file unix.Stat_t
	if unix.Fstat(fd, &file) != nil {
		return 0
	}
	return file.Size
}
