package reader

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/access/client"
	"mailboxd/mailbox"
	"mailboxd/watcher"
)

// A Location is where a mailbox and its state are.
type Location struct {
	Root     string
	StateDir string // "": the default of the root
	Socket   string // the approvers' socket of a daemon to ask instead; "" for none
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
	if l.Socket != "" {
		r, _, err := l.Connect(ctx)
		return r, err
	}
	root, state, err := l.locate()
	if err != nil {
		return nil, err
	}
	r := &Reader{Location: l, Root: root}
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		return r, r.openLedger(ctx)
	}
	if r.State, err = mailbox.OpenState(state, root); err != nil {
		return nil, err
	}
	daemon, err := dial(ctx, root, state)
	r.served = err == nil || IsBusy(err)
	switch {
	case err == nil:
		r.Client, r.close = daemon, daemon.Close
	case errors.Is(err, client.ErrDown), IsBusy(err):
		err = r.openLedger(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Connect opens a reader that needs the daemon. Without one, the error wraps
// client.ErrDown.
func (l Location) Connect(ctx context.Context) (*Reader, *client.Client, error) {
	if l.Socket != "" {
		daemon, err := l.approversSocket(ctx)
		if err != nil {
			return nil, nil, err
		}
		return &Reader{Location: l, Client: daemon, close: daemon.Close, served: true}, daemon, nil
	}
	root, state, err := l.locate()
	if err != nil {
		return nil, nil, err
	}
	daemon, err := dial(ctx, root, state)
	if err != nil {
		return nil, nil, err
	}
	return &Reader{Location: l, Root: root, Client: daemon, close: daemon.Close, served: true}, daemon, nil
}

// AwaitDaemon waits until a daemon answers.
func (l Location) AwaitDaemon(ctx context.Context) error {
	for {
		r, _, err := l.Connect(ctx)
		if err == nil {
			return r.Close()
		}
		if !errors.Is(err, client.ErrDown) && !errors.Is(err, ErrNoMailbox) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// approversSocket connects to the approvers' socket.
func (l Location) approversSocket(ctx context.Context) (*client.Client, error) {
	path, err := filepath.Abs(l.Socket)
	if err != nil {
		return nil, err
	}
	if err := unix.Access(path, unix.W_OK); err != nil {
		return nil, fmt.Errorf("open socket %s: %w; it is there while its daemon serves, for members of the daemon's approvers_group", l.Socket, err)
	}
	return client.Open(ctx, client.SocketPath{Dir: filepath.Dir(path), Name: filepath.Base(path)})
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
// ends or look fails. Each call has a new reader, since daemons come and go. If the daemon
// leaves during a look after the first one, the next look replaces it. A look may end ctx, and its
// error counts nevertheless, except that the daemon left.
func (l Location) Watch(ctx context.Context, look func(context.Context, *Reader) error) error {
	_, state, err := l.locate()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var failed error
	looked := false
	err = watcher.Watch(ctx, []string{state}, time.Second, func() {
		if ctx.Err() != nil {
			return
		}
		began := time.Now()
		failed = l.Read(context.WithoutCancel(ctx), look)
		ended := ctx.Err() != nil
		if (ended || looked) && leaves(failed) || ended && errors.Is(failed, context.Canceled) {
			failed = nil // the caller wants no more, or the next look finds another daemon or none
		}
		if looked = true; failed != nil {
			stop()
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(pollGap, 4*time.Since(began))): // reading many tasks takes long
		}
	})
	return errors.Join(failed, err)
}
