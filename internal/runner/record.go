package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"mailboxd/internal/fault"
	"mailboxd/internal/task"
)

// maxRecord is more than any record of ours has: argv is the largest part.
const maxRecord = 4 << 20

// A record is what a run directory says of its run: meta.json while that goes on.
// How it ends is added to that, and the same file is exit.json then: one to make
// instead of two.
type record struct {
	dir  string
	meta Meta

	fd   int // -1: it is not made, or could not be
	text []byte
	made error // nil, or why it could not
}

// newRecord is the record of a run that has begun. It is not made yet.
func newRecord(dir string, m Meta) *record { return &record{dir: dir, meta: m, fd: -1} }

// make makes meta.json, which was not there.
func (r *record) make() {
	if r.text, r.made = json.Marshal(r.meta); r.made == nil {
		r.text = append(r.text, '\n')
		r.fd, r.made = createFile(inDir(r.dir, MetaFile), r.text)
	}
	if r.made != nil {
		r.made = fmt.Errorf("write run: %w", r.made)
	}
	fault.Point("meta-written")
}

// end puts exit.json in one step: a reader finds all of it or nothing. The error
// is also that of making meta.json.
func (r *record) end(e task.Exit) error {
	if r.text == nil {
		r.make()
	}
	defer r.close()
	return errors.Join(r.made, r.put(e))
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
	if link(r.fd, inDir(r.dir, ExitFile)) != nil { // the agent took one away, or made the other
		return putExit(r.dir, e)
	}
	fault.Point("exit-written")
	return nil
}

// rewrite makes the text all there is of the file: the agent could write to it.
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

// putExit puts exit.json in one step, as a file of its own.
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

// KeepExit writes exit.json for a run that is over, unless it is there: how the
// run ended is then known to whoever reads its directory later.
func KeepExit(dir string, e task.Exit) error {
	if _, there, err := ReadExit(dir); there || err != nil {
		return err
	}
	_ = os.Remove(inDir(dir, ExitFile+".tmp")) // one that did not fit
	return putExit(dir, e)
}

// readRecord reads one of our own files out of a run directory. The agent can
// write there too, so it is neither followed elsewhere nor waited for.
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
