package reader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mailboxd/internal/client"
	"mailboxd/mailbox"
	"mailboxd/watcher"
)

// A Location is where a mailbox and its state are.
type Location struct {
	Root     string
	StateDir string // "": the default of the root
}

// locate returns the absolute paths of the mailbox and its state.
func (l Location) locate() (root, state string, err error) {
	if root, err = filepath.EvalSymlinks(l.Root); errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("open %s: %w", l.Root, ErrNoMailbox)
	}
	if err == nil {
		root, err = filepath.Abs(root)
	}
	state = l.StateDir
	if err == nil && state == "" {
		state, err = mailbox.DefaultStateDir(root)
	}
	return root, state, err
}

// Open opens a reader. It reads from the daemon, or from the ledger without one.
func (l Location) Open(ctx context.Context) (*Reader, error) {
	root, state, err := l.locate()
	if err != nil {
		return nil, err
	}
	r := &Reader{Location: l, Root: root}
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if r.State, err = mailbox.OpenState(state, root); err != nil {
		return nil, err
	}
	daemon, err := dial(ctx, root, state)
	r.served = err == nil || IsBusy(err)
	switch {
	case err == nil:
		r.Records, r.close = daemon, daemon.Close
	case errors.Is(err, client.ErrDown), IsBusy(err):
		err = r.openLedger()
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Connect opens a reader that needs the daemon. Without one, the error wraps
// client.ErrDown.
func (l Location) Connect(ctx context.Context) (*Reader, *client.Client, error) {
	root, state, err := l.locate()
	if err != nil {
		return nil, nil, err
	}
	daemon, err := dial(ctx, root, state)
	if err != nil {
		return nil, nil, err
	}
	return &Reader{Location: l, Root: root, Records: daemon, close: daemon.Close}, daemon, nil
}

// dial connects to the daemon of a mailbox.
func dial(ctx context.Context, root, state string) (*client.Client, error) {
	places, err := SocketPaths(root, state)
	if err != nil {
		return nil, err
	}
	return client.Open(ctx, places...)
}

// SocketPaths returns where the control socket of a mailbox may be.
func SocketPaths(root, state string) ([]client.SocketPath, error) {
	slug, err := mailbox.Slug(root)
	if err != nil {
		return nil, err
	}
	return client.SocketPaths(state, slug), nil
}

// Read calls look with a new reader.
func (l Location) Read(ctx context.Context, look func(context.Context, *Reader) error) error {
	r, err := l.Open(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	return look(ctx, r)
}

// pollGap is the least time between two looks of watch.
const pollGap = 200 * time.Millisecond

// Watch calls look at once, after changes of the ledger, and each second, until ctx
// ends or look fails. Each call has a new reader, since daemons come and go.
func (l Location) Watch(ctx context.Context, look func(context.Context, *Reader) error) error {
	_, state, err := l.locate()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	err = watcher.Watch(ctx, []string{state}, time.Second, func() {
		if ctx.Err() != nil {
			return
		}
		began := time.Now()
		if failed = l.Read(context.WithoutCancel(ctx), look); failed != nil {
			stop()
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(pollGap, 4*time.Since(began))): // reading many tasks takes long
		}
	})
	return errors.Join(failed, err)
}
