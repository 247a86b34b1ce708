package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
)

// maxRecord exceeds the size of any record; argv is the largest part.
const maxRecord = 4 << 20

// A record is the file about a run in its directory: meta.json during the run. At the end,
// the exit is appended and the same file becomes exit.json, which saves a second file.
type record struct {
	dir  string
	meta Meta

	fd        int // -1: not made
	text      []byte
	createErr error // why it couldn't be made; nil: no error
}

// newRecord returns the record of a run that has begun. It isn't made yet.
func newRecord(dir string, m Meta) *record { return &record{dir: dir, meta: m, fd: -1} }

// create creates meta.json, which must not exist.
func (r *record) create() {
	if r.text, r.createErr = json.Marshal(r.meta); r.createErr == nil {
		r.text = append(r.text, '\n')
		r.fd, r.createErr = createFile(inDir(r.dir, MetaFile), r.text)
	}
	if r.createErr != nil {
		r.createErr = fmt.Errorf("write run: %w", r.createErr)
	}
	fault.Point("meta-written")
}

// replace makes the record about the process of the next step. If it can't, the earlier one stays:
// a sweep finds the process by its mark and its environment too.
func (r *record) replace(m Meta) {
	r.meta = m
	if r.fd < 0 {
		return
	}
	text, err := json.Marshal(m)
	if err != nil {
		return
	}
	text = append(text, '\n')
	temporary := inDir(r.dir, MetaFile+".tmp")
	fd, err := createFile(temporary, text)
	if err != nil {
		return
	}
	if os.Rename(temporary, inDir(r.dir, MetaFile)) != nil {
		unix.Close(fd)
		return
	}
	r.close()
	r.fd, r.text = fd, text
}

// finish writes exit.json atomically. The error includes that of create.
func (r *record) finish(e task.Exit) error {
	if r.text == nil {
		r.create()
	}
	defer r.close()
	return errors.Join(r.createErr, r.put(e))
}

func (r *record) put(e task.Exit) error {
	if r.fd < 0 {
		return putExit(r.dir, e)
	}
	exit, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("put exit: %w", err)
	}
	text := append(r.text[:len(r.text)-2], ',') // both are objects
	text = append(append(text, exit[1:]...), '\n')
	if r.rewrite(text) != nil {
		return putExit(r.dir, e)
	}
	fault.Point("exit-aside")
	if link(r.fd, inDir(r.dir, ExitFile)) != nil { // the agent removed one, or made the other
		return putExit(r.dir, e)
	}
	fault.Point("exit-written")
	return nil
}

// rewrite replaces the whole content of the file, because the agent could write to it.
func (r *record) rewrite(text []byte) error {
	if err := fault.Read("write exit.json"); err != nil {
		return err
	}
	if err := writeAll(r.fd, text, 0); err != nil {
		return err
	}
	var now unix.Stat_t
	if err := unix.Fstat(r.fd, &now); err != nil || now.Size == int64(len(text)) {
		return err
	}
	return unix.Ftruncate(r.fd, int64(len(text)))
}

func (r *record) close() {
	if r.fd >= 0 {
		unix.Close(r.fd)
		r.fd = -1
	}
}

// putExit writes exit.json atomically, as a separate file.
func putExit(dir string, e task.Exit) error {
	text, err := json.Marshal(e)
	if err == nil {
		err = fault.Read("write exit.json")
	}
	if err != nil {
		return fmt.Errorf("put exit: %w", err)
	}
	temporary := inDir(dir, ExitFile+".tmp")
	fd, err := createFile(temporary, append(text, '\n'))
	if err != nil {
		return fmt.Errorf("put exit: %w", err)
	}
	unix.Close(fd)
	if err := os.Rename(temporary, inDir(dir, ExitFile)); err != nil {
		return fmt.Errorf("put exit: %w", err)
	}
	fault.Point("exit-written")
	return nil
}

// KeepExit writes exit.json for a run that has ended, unless it exists. Later readers of
// the directory then know the end.
func KeepExit(dir string, e task.Exit) error {
	if _, there, err := ReadExit(dir); there || err != nil {
		return err
	}
	_ = os.Remove(inDir(dir, ExitFile+".tmp")) // a partial one
	return putExit(dir, e)
}

// readRecord reads a record in a run directory. The agent can write there, so links aren't
// followed and reads don't block.
func readRecord(dir, name string, record any) (bool, error) {
	fd, err := -1, fault.Read(name)
	if err == nil {
		fd, err = open(inDir(dir, name), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read run: %w", err)
	}
	defer unix.Close(fd)
	data, err := readRegular(fd)
	if err == nil {
		err = json.Unmarshal(data, record)
	}
	if err != nil {
		return false, fmt.Errorf("read run: %s: %w", inDir(dir, name), err)
	}
	return true, nil
}

func readRegular(fd int) ([]byte, error) {
	var file unix.Stat_t
	err := unix.Fstat(fd, &file)
	if err == nil && file.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errors.New("is not a regular file")
	}
	if err != nil {
		return nil, err
	}
	return readAll(fd, maxRecord)
}
