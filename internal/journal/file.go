package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"mailboxd/internal/fault"
)

const (
	headName = "head"
	asideEnd = ".aside" // a file that is to take the place of another one
)

// readHead returns what the head file has, and the zero Position if there is none.
func readHead(dir string) (Position, error) {
	text, err := os.ReadFile(filepath.Join(dir, headName))
	if errors.Is(err, os.ErrNotExist) {
		return Position{}, nil
	}
	if err != nil {
		return Position{}, err
	}
	head := Position{}
	p := parser{text: text}
	p.expect(`{"n":`)
	head.N = p.number()
	p.expect(`,"sha256":"`)
	head.Hash = p.hash()
	p.expect("\"}\n")
	if !p.done() {
		return Position{}, &DamageError{File: headName, Problem: "it cannot be read"}
	}
	return head, nil
}

// WriteHead has the head file say where the journal ends. Append, Open and Close do so; of
// an empty journal the file says that there is one.
func (j *Journal) WriteHead() error {
	err := replaceFile(filepath.Join(j.dir, headName), func(file *os.File) error {
		_, err := fmt.Fprintf(file, "{\"n\":%d,\"sha256\":\"%s\"}\n", j.at.N, j.at.Hash)
		return err
	})
	if err == nil {
		j.head = j.at
	}
	return err
}

// replaceFile writes a file aside and has it take the place of path.
func replaceFile(path string, write func(*os.File) error) error {
	aside := path + asideEnd
	file, err := os.OpenFile(aside, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = write(file); err == nil {
		err = fault.Read("sync journal file aside")
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = fault.Read("rename journal file")
	}
	if err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(aside))
	}
	return syncDir(filepath.Dir(path))
}

// removeAside removes files that never took their place.
func removeAside(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+asideEnd))
	for _, path := range paths {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// writeText writes a group and syncs it.
func writeText(file *os.File, text []byte, offset int64) error {
	if err := fault.Read("write journal segment"); err != nil {
		return err
	}
	if _, err := file.WriteAt(text, offset); err != nil {
		return err
	}
	if err := fault.Read("sync journal segment"); err != nil {
		return err
	}
	for {
		if err := unix.Fdatasync(int(file.Fd())); !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

func syncDir(path string) error {
	if err := fault.Read("sync journal directory"); err != nil {
		return err
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
