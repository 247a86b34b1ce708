// Package api serves HTTP and JSON on the control socket, which only its user can open.
// A process of a run may read and change nothing.
package api

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"mailboxd/dispatch"
	"mailboxd/internal/access/client"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/task"
)

// Options configure a Server.
type Options struct {
	SocketPaths []client.SocketPath // where its socket may be; the first that works is taken
	GroupSocket client.SocketPath   // for approvers of a group; zero for none
	Version     string              // of this program

	// RunOf says why a process is part of a run, or "". A process that cannot be
	// examined counts as one.
	RunOf func(pid int) (why string, err error)

	// OwnRunOf is RunOf without the runs of other mailboxes.
	OwnRunOf func(pid int) (why string, err error)

	// Survivors says which processes of the run in a directory there are.
	Survivors func(dir string) ([]task.Survivor, error)

	// Approvers returns the names under which a user may approve; none: not at all.
	Approvers func(uid int) []string

	// Proofs returns the proofs that approvers need, and their keys.
	Proofs func() proof.Approvers

	Cards func() []client.Card // what the configuration says that agents can do; nil: nothing

	Runners RunnerTable // the zero value has none

	Reload     func() client.ConfigDiff // reads the configuration again
	ConfigDiff func() client.ConfigDiff // compares the configuration with its file

	Recheck time.Duration  // how often to look whether the socket is still there; 0: twice a minute
	Log     zerolog.Logger // the zero value is silent
}

// A Server is the control socket of a daemon. Open makes it, Serve answers its requests,
// Close removes the socket.
type Server struct {
	opts    Options
	engine  *dispatch.Dispatcher
	records *Records
	sockets []*socket // the control socket, and the approvers' socket if there is one
	opened  time.Time

	mu     sync.RWMutex // held by each request while it is answered: guards closed
	closed bool
}

// Open makes the socket. The caller holds the lock of the mailbox, so a socket that is there
// already belongs to a killed daemon.
func Open(ctx context.Context, engine *dispatch.Dispatcher, opts Options) (*Server, error) {
	d := &Server{
		opts: opts, engine: engine, opened: time.Now(),
		records: &Records{Root: engine.Box.Path(), State: engine.State, Ledger: engine.Ledger.Reader},
	}
	if err := d.openSocket(ctx, opts.SocketPaths...); err != nil {
		return nil, fmt.Errorf("open control socket: %w", err)
	}
	if opts.GroupSocket.Group != 0 {
		if err := d.openSocket(ctx, opts.GroupSocket); err != nil {
			return nil, errors.Join(fmt.Errorf("open approvers_socket: %w", err), d.Close())
		}
	}
	return d, nil
}

// Close removes the sockets.
func (d *Server) Close() (err error) {
	for _, s := range d.sockets {
		_ = s.listener.Close() // Serve has done so, if it was called
		err = errors.Join(err, s.path.Remove())
	}
	return err
}

// patience is how long requests may take after the daemon begins to stop.
const patience = 300 * time.Millisecond

// Serve answers until ctx ends, and returns soon after, even if a caller is still
// connected. It returns nil then.
func (d *Server) Serve(ctx context.Context) error {
	work, ctx := errgroup.WithContext(ctx)
	server := &http.Server{
		Handler:           d.handler(),
		ConnContext:       withPeer,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second, // of a request; answers set their own
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(d.opts.Log, "", 0),
	}
	answer := func(l net.Listener) {
		work.Go(func() error {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve control socket: %w", err)
			}
			return nil
		})
	}
	for _, s := range d.sockets {
		answer(s.listener)
		work.Go(func() error { d.keep(ctx, s, answer); return nil })
	}
	work.Go(func() error {
		<-ctx.Done()
		wait, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer stop()
		if server.Shutdown(wait) != nil {
			server.Close()
		}
		return nil
	})
	err := work.Wait()
	d.closeAll()
	return err
}

// closeAll waits for open requests, and refuses new ones: the ledger is closed next.
func (d *Server) closeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// status says which daemon this is.
func (d *Server) status(r *http.Request) (any, error) {
	s, err := d.records.statusOf(r, d.engine.Ledger.CountOpen)
	if err != nil {
		return nil, err
	}
	s.Version, s.PID, s.Started = d.opts.Version, os.Getpid(), d.opened
	for _, f := range d.engine.Faults() {
		s.Faults = append(s.Faults, client.Fault(f))
	}
	return s, nil
}
