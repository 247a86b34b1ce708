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
	"mailboxd/internal/client"
	"mailboxd/internal/proof"
	"mailboxd/internal/task"
)

// Options configure a Server.
type Options struct {
	SocketPaths []client.SocketPath // where its socket may be; the first that works is taken
	Version     string              // of this program

	// RunOf says why a process is part of a run, or "". A process that cannot be
	// examined counts as one.
	RunOf func(pid int) (why string, err error)

	// Survivors says which processes of the run in a directory there are.
	Survivors func(dir string) ([]task.Survivor, error)

	// Approvers returns the names under which a user may approve; none: not at all.
	Approvers func(uid int) []string

	// Proofs returns the proofs that approvers need, and their keys.
	Proofs func() proof.Approvers

	Reload     func() client.ConfigDiff // reads the configuration again
	ConfigDiff func() client.ConfigDiff // compares the configuration with its file

	Recheck time.Duration  // how often to look whether the socket is still there; 0: twice a minute
	Log     zerolog.Logger // the zero value is silent
}

// A Server is the control socket of a daemon. Open makes it, Serve answers at it,
// Close takes the socket away.
type Server struct {
	opts       Options
	engine     *dispatch.Dispatcher
	records    *Records
	socketPath client.SocketPath
	listener   net.Listener
	opened     time.Time

	mu     sync.RWMutex // held by each request while it is answered: guards closed
	closed bool
}

// Open puts the socket in its place. Only who holds the lock of the mailbox may:
// a socket that is there is that of a daemon which was killed.
func Open(ctx context.Context, engine *dispatch.Dispatcher, opts Options) (*Server, error) {
	d := &Server{
		opts: opts, engine: engine, opened: time.Now(),
		records: &Records{Root: engine.Box.Path(), State: engine.State, Ledger: engine.Ledger.Reader},
	}
	var failed error
	for _, location := range opts.SocketPaths {
		listener, err := location.Listen(ctx)
		if err == nil {
			d.socketPath, d.listener = location, d.newListener(listener)
			return d, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("open control socket: %w", failed)
}

// Close takes the socket away.
func (d *Server) Close() error {
	_ = d.listener.Close() // Serve has done so, if it was called
	return d.socketPath.Remove()
}

// patience is how long those who are answered may take once we stop.
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
	answer(d.listener)
	work.Go(func() error { d.keepSocket(ctx, answer); return nil })
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

// closeAll waits for those who are being answered, and lets nobody in any more: the
// ledger is closed next.
func (d *Server) closeAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// status says which daemon this is.
func (d *Server) status(r *http.Request) (any, error) {
	s := client.Status{
		Version: d.opts.Version, PID: os.Getpid(), Root: d.records.Root, StateDir: d.engine.State.Path(),
		Started: d.opened, Open: map[string]int{},
	}
	var err error
	if r.URL.Query().Get("brief") == "" {
		if s.Open, err = d.open(r.Context()); err != nil {
			return nil, err
		}
	}
	if s.Paused, err = d.engine.Ledger.Paused(r.Context()); err != nil {
		return nil, err
	}
	for _, f := range d.engine.Faults() {
		s.Faults = append(s.Faults, client.Fault(f))
	}
	s.LastEvent, err = d.engine.Ledger.LastEvent(r.Context())
	return s, err
}

// open counts what is not done.
func (d *Server) open(ctx context.Context) (map[string]int, error) {
	counts, err := d.engine.Ledger.CountOpen(ctx)
	open := make(map[string]int, len(counts))
	for state, n := range counts {
		open[string(state)] = n
	}
	return open, err
}
