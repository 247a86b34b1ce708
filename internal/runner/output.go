package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// output is what a run writes. The process has the files themselves, never
// pipes of ours: nothing can fill up, and nobody who keeps them open can make
// us wait.
type output struct {
	stdout, stderr *os.File
}

// createOutput makes both files. That they exist tells a later reader that the
// run may have begun; so they must not exist before.
func createOutput(dir string) (output, error) {
	// Appending, so that several writers mix lines instead of overwriting them
	// and a file that is cut short has no hole.
	const flags = os.O_WRONLY | os.O_APPEND | os.O_CREATE | os.O_EXCL
	stdout, err := os.OpenFile(inDir(dir, StdoutFile), flags, 0o600)
	if err != nil {
		return output{}, fmt.Errorf("create output: %w", err)
	}
	stderr, err := os.OpenFile(inDir(dir, StderrFile), flags, 0o600)
	if err != nil {
		stdout.Close()
		_ = os.Remove(stdout.Name())
		return output{}, fmt.Errorf("create output: %w", err)
	}
	return output{stdout, stderr}, nil
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
	for _, f := range o.files() {
		f.Close() // we have written nothing, so there is nothing to lose
	}
}

// remove takes back what was made for a run that did not begin.
func (o output) remove() {
	o.close()
	for _, f := range o.files() {
		_ = os.Remove(f.Name()) // an empty file too many harms nobody
	}
}

func (o output) files() []*os.File { return []*os.File{o.stdout, o.stderr} }

// size returns the bytes in both files, and in the larger one.
func (o output) size() (sum, largest int64) {
	for _, f := range o.files() {
		if info, err := f.Stat(); err == nil {
			sum += info.Size()
			largest = max(largest, info.Size())
		}
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
	for _, f := range o.files() {
		if info, err := f.Stat(); err == nil && info.Size() > limit {
			found = true
			_ = f.Truncate(limit) // or it stays too long, which harms no reader
		}
	}
	return found
}
