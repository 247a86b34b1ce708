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

	"mailboxd/internal/task"
)

// ErrKeeperGone says that the keepers that were asked died one after the other.
// Nothing was started.
var ErrKeeperGone = errors.New("the keeper is gone")

var errUnknown = errors.New("the keeper does not have the run")

// A line is one end of a connection between a keeper and a client. Each message
// is a line of text; an order follows its line.
type line struct {
	conn      net.Conn
	in        *bufio.Reader
	spoilt    bool // something unasked for may be said on it
	unwritten bool // how the last run ended; see report

	mu sync.Mutex // one writes at a time
}

func newLine(conn net.Conn) *line {
	return &line{conn: conn, in: bufio.NewReader(conn)}
}

// send says a message.
func (l *line) send(message any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if d, ok := message.(demand); ok {
		text = append(text, d.order...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.conn.Write(text)
	return err
}

// receive hears one message.
func (l *line) receive(message any) error {
	text, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) { // of a long command, or environment
		start := slices.Clone(text)
		text, err = l.in.ReadBytes('\n')
		text = append(start, text...)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, message)
}

// listen hears what a client demands.
func (l *line) listen() (d demand, err error) {
	if err := l.receive(&d); err != nil || d.Start == 0 {
		return d, err
	}
	if d.Start < 0 || d.Start > maxOrder {
		return d, errors.New("an order is too long")
	}
	d.order = make([]byte, d.Start)
	_, err = io.ReadFull(l.in, d.order)
	return d, err
}

// greet hears the keeper's hello. Until then nobody knows that one is there.
func (l *line) greet(ctx context.Context) error {
	const patience = 5 * time.Second
	l.conn.SetReadDeadline(time.Now().Add(patience))
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

// follow asks for a run and returns how it ended; see Run and ErrDetach for what
// the end of ctx means. Other errors are a *SpawnError, errUnknown, ErrKeeperGone,
// and what comes with a complete Exit.
func (l *line) follow(ctx context.Context, d demand, started func(Process)) (task.Exit, error) {
	l.unwritten = false
	if l.send(d) != nil {
		return task.Exit{}, ErrKeeperGone
	}
	calm := context.AfterFunc(ctx, func() { l.turn(context.Cause(ctx)) })
	defer func() { l.spoilt = !calm() || l.spoilt }()
	for {
		var r report
		if err := l.receive(&r); err != nil {
			l.spoilt = true
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

// turn says that the client does not want to follow any more: for ErrDetach it
// hangs up, else the run is to end.
func (l *line) turn(cause error) {
	if errors.Is(cause, ErrDetach) {
		l.conn.Close()
		return
	}
	reason := cause.Error()
	_ = l.send(demand{Stop: &reason}) // who is gone needs not be told
}
