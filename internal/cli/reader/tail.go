package reader

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mailboxd/internal/stores/dirtree"
	"mailboxd/watcher"
)

// A Tail copies files of a run as they grow.
type Tail struct {
	dir   string
	files []*followedFile
}

// NewTail returns a Tail of the files in a run directory.
func NewTail(dir string) *Tail { return &Tail{dir: dir} }

// Add has a file copied to a writer, from its beginning.
func (t *Tail) Add(name string, to io.Writer) {
	t.files = append(t.files, &followedFile{path: filepath.Join(t.dir, name), to: to})
}

// Close closes the files, and the writers that have a Close. Calling it twice is harmless.
func (t *Tail) Close() error {
	var failed error
	for _, f := range t.files {
		if f.file != nil {
			failed = errors.Join(failed, f.file.Close())
		}
		if w, ok := f.to.(io.Closer); ok && w != os.Stdout && w != os.Stderr {
			failed = errors.Join(failed, w.Close())
		}
	}
	t.files = nil
	return failed
}

// Copy copies what is new in the files.
func (t *Tail) Copy() error {
	for _, f := range t.files {
		if err := f.copy(); err != nil {
			return err
		}
	}
	return nil
}

// Follow copies until the run has ended.
func (t *Tail) Follow(ctx context.Context, hasEnded func() bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	err := watcher.Watch(ctx, []string{t.dir}, time.Second, func() {
		if ctx.Err() != nil {
			return
		}
		ended := hasEnded()
		if failed = t.Copy(); failed != nil || ended {
			stop()
		}
	})
	return errors.Join(failed, err)
}

// A followedFile is copied as it grows.
type followedFile struct {
	path string
	to   io.Writer
	file *os.File // nil until it exists
}

// copy opens the file carefully, since an agent can replace it.
func (g *followedFile) copy() error {
	if g.file == nil {
		file, err := dirtree.OpenRegular(g.path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		g.file = file
	}
	_, err := io.Copy(g.to, g.file)
	return err
}
