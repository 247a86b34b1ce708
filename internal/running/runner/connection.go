package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"mailboxd/internal/decisions/task"
)

// ErrKeeperGone says that all keepers died before they started the run.
var ErrKeeperGone = errors.New("the keeper is gone")

var errUnknown = errors.New("the keeper does not have the run")

// A connection is one end of the socket between a keeper and a client. Each message is a
// line of text; a start request is followed by its Spec.
type connection struct {
	conn      net.Conn
	in        *bufio.Reader
	unusable  bool // an unread response may follow
	unwritten bool // of the last run; see response

	mu sync.Mutex // one writer at a time
}

func newConnection(conn net.Conn) *connection {
	return &connection{conn: conn, in: bufio.NewReader(conn)}
}

// send writes a message.
func (l *connection) send(message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if d, ok := message.(request); ok {
		text = append(text, d.spec...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.conn.Write(text)
	return err
}

// receive reads a message.
func (l *connection) receive(message any) error {
	text, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) { // a long command or environment
		start := slices.Clone(text)
		text, err = l.in.ReadBytes('\n')
		text = append(start, text...)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, message)
}

// listen reads a client's request.
func (l *connection) listen() (d request, err error) {
	if err := l.receive(&d); err != nil || d.Start == 0 {
		return d, err
	}
	if d.Start < 0 || d.Start > maxStart {
		return d, errors.New("an order is too long")
	}
	d.spec = make([]byte, d.Start)
	_, err = io.ReadFull(l.in, d.spec)
	return d, err
}

// greet reads the keeper's hello, which shows that a keeper serves the socket.
func (l *connection) greet(ctx context.Context) error {
	const timeout = 5 * time.Second
	l.conn.SetReadDeadline(time.Now().Add(timeout))
	defer context.AfterFunc(ctx, func() { l.conn.SetReadDeadline(time.Unix(1, 0)) })()
	var h hello
	if err := l.receive(&h); err != nil {
		return fmt.Errorf("%w: %w", ErrKeeperGone, err)
	}
	if h.Protocol < protocol {
		return errors.New("what is connected is no keeper")
	}
	return l.conn.SetReadDeadline(time.Time{})
}

// follow requests a run and returns how it ended; see Run and ErrDetach for the end of ctx.
// Other errors are a *SpawnError, errUnknown, ErrKeeperGone, and errors with a complete
// Exit.
func (l *connection) follow(ctx context.Context, d request, started func(Process)) (task.Exit, error) {
	l.unwritten = false
	if l.send(d) != nil {
		return task.Exit{}, ErrKeeperGone
	}
	stop := context.AfterFunc(ctx, func() { l.unfollow(context.Cause(ctx)) })
	defer func() { l.unusable = !stop() || l.unusable }()
	for {
		var r response
		if err := l.receive(&r); err != nil {
			l.unusable = true
			if errors.Is(context.Cause(ctx), ErrDetach) {
				return task.Exit{}, ErrDetach
			}
			return task.Exit{}, ErrKeeperGone
		}
		l.unwritten = r.Unwritten
		if r.Started != nil && started != nil {
			started(*r.Started)
		}
		switch {
		case r.Refused != nil:
			return task.Exit{}, r.Refused.spawnError()
		case r.Exit != nil && r.Error != "":
			return *r.Exit, errors.New(r.Error)
		case r.Exit != nil:
			return *r.Exit, nil
		case r.Unknown:
			return task.Exit{}, errUnknown
		}
	}
}

// unfollow ends the following of a run: with ErrDetach it closes the connection, otherwise
// it asks the keeper to end the run.
func (l *connection) unfollow(cause error) {
	if errors.Is(cause, ErrDetach) {
		l.conn.Close()
		return
	}
	reason := cause.Error()
	_ = l.send(request{Stop: &reason}) // a dead keeper needs no request
}
