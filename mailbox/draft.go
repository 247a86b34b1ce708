package mailbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
)

// A Draft is a result that is on the disk and has no name, so nobody sees it.
// Whoever made it puts or drops it; when they are killed nothing is left of it.
// Its methods may be called from several goroutines at once.
type Draft struct {
	box  *Box
	data []byte
	mode fs.FileMode
	file atomic.Int64 // its descriptor; -1 once somebody has taken it
}

// DraftResult does of PutResult what can be done before it is certain that the
// result is one. There is no Draft where files always have names: the error
// does not matter to who calls PutResult then.
func (b *Box) DraftResult(data []byte, mode fs.FileMode) (*Draft, error) {
	_, release := b.use()
	defer release()
	dir, err := b.openResults()
	if err != nil {
		return nil, fmt.Errorf("draft result: %w", err)
	}
	defer unix.Close(dir) // nothing was written
	file, err := writeNameless(dir, data, mode)
	if err != nil {
		return nil, fmt.Errorf("draft result: %w", err)
	}
	d := &Draft{box: b, data: data, mode: mode}
	d.file.Store(int64(file))
	return d, nil
}

// Put is Box.PutResult for what was drafted. A Draft that cannot have the name,
// or that was put or dropped before, is written anew.
func (d *Draft) Put(id envelope.ID) error {
	err := d.name(resultName(id))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("put result %s: %w", id, err)
	}
	return d.box.PutResult(id, d.data, d.mode)
}

func (d *Draft) name(name string) error {
	file := int(d.file.Swap(-1))
	if file < 0 {
		return os.ErrClosed
	}
	defer unix.Close(file) // written and synced, or of no use
	_, release := d.box.use()
	defer release()
	dir, err := d.box.openResults() // of now: the one it was drafted in may have been replaced
	if err != nil {
		return err
	}
	defer unix.Close(dir) // nothing was written
	return nameFile(file, dir, name)
}

// Drop lets go of a Draft that was not put. Once more does nothing.
func (d *Draft) Drop() {
	if file := int(d.file.Swap(-1)); file >= 0 {
		unix.Close(file) // it is to be lost
	}
}
