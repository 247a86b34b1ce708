package gateway

import (
	"context"
	"errors"
	"sync"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
)

// A daemon is a connection to a daemon, with what commands read from it.
type daemon struct {
	*client.Client
	reader *reader.Reader
}

// A link is the connection to the daemon that serves the mailbox now. Daemons come and go.
type link struct {
	at reader.Location

	mu      sync.Mutex // guards current
	current daemon
}

// use calls do with the daemon. If that daemon has left, it calls do once more with the next one. Without a
// daemon, the error wraps client.ErrDown.
func (l *link) use(ctx context.Context, do func(daemon) error) error {
	var err error
	for range 2 {
		var d daemon
		if d, err = l.get(ctx); err != nil {
			return err
		}
		if err = do(d); !errors.Is(err, client.ErrDown) {
			return err
		}
		l.drop(d)
	}
	return err
}

func (l *link) get(ctx context.Context) (daemon, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current.Client != nil {
		return l.current, nil
	}
	r, c, err := l.at.Connect(ctx)
	if err != nil {
		return daemon{}, err
	}
	l.current = daemon{c, r}
	return l.current, nil
}

// drop forgets a daemon that has left. Requests of others to it fail as well, and get the next one.
func (l *link) drop(d daemon) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == d {
		l.current = daemon{}
	}
}

func (l *link) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current.Client == nil {
		return nil
	}
	return l.current.reader.Close()
}

// isDown reports whether an error says that no daemon can be asked now. The next one can.
func isDown(err error) bool {
	said, ok := errors.AsType[*client.Error](err)
	return errors.Is(err, client.ErrDown) || errors.Is(err, reader.ErrNoMailbox) ||
		ok && (said.Kind == client.Stopping || said.Kind == client.Busy)
}
