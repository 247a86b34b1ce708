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

// A Draft is a result on disk without a name, invisible to readers. Its maker puts or drops
// it; if the process is killed, nothing is left. Its methods may be called concurrently.
type Draft struct {
	box  *Box
	data []byte
	mode fs.FileMode
	file atomic.Int64 // the descriptor; -1 after Put or Drop
}

// DraftResult does the first part of PutResult before the result is certain. It fails on a
// file system without nameless files; the caller then calls PutResult.
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

// Put is Box.PutResult for a draft. If the draft can't get the name, or was put or dropped
// before, Put writes the data again.
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
	defer unix.Close(file) // written and synced, or useless
	_, release := d.box.use()
	defer release()
	dir, err := d.box.openResults() // the current one; the draft's may have been replaced
	if err != nil {
		return err
	}
	defer unix.Close(dir) // nothing was written
	return nameFile(file, dir, name)
}

// Drop discards a Draft that wasn't put. A second call does nothing.
func (d *Draft) Drop() {
	if file := int(d.file.Swap(-1)); file >= 0 {
		unix.Close(file) // its content isn't needed
	}
}
