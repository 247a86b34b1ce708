// Package gateway serves the agents of a mailbox to A2A clients, for as long as mailboxd gateway
// runs. It is a client of the control socket. It keeps nothing: a message becomes a task line, and
// each answer is read from the ledger.
package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"mailboxd/internal/access/web/access"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/running/dial"
)

// Options configure the gateway.
type Options struct {
	Location reader.Location
	Version  string // of this program
	Listen   string // the address and port

	// Away from the loopback interface, all of these are needed.
	Cert, Key string // files of the certificate and its key, in PEM
	Host      string // the name by which clients ask for the gateway

	Rate    int                      // requests of a sender in a second
	MaxLine int64                    // of a task line (intake.max_line_bytes)
	Senders func() ([]Sender, error) // as the configuration has them now

	Log   zerolog.Logger
	Ready func(url string) // is called once the gateway accepts connections; nil: nothing
}

// A Sender may log in.
type Sender struct {
	Name   string
	Digest [32]byte // SHA-256 of its token
	Agents []string // that it may ask
}

// Serve serves A2A clients until ctx ends. It returns nil then.
func Serve(ctx context.Context, opts Options) error {
	s, listener, err := open(ctx, opts)
	if err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	server := access.NewServer(ctx, s.admit(s.routes()), connContext, 30*time.Second)
	work.Go(func() error { return access.Serve(ctx, server, listener, patience) })
	work.Go(func() error { s.changes.serve(ctx); return nil })
	if opts.Ready != nil {
		opts.Ready(s.url)
	}
	return errors.Join(work.Wait(), s.daemon.close())
}

// patience is how long requests may take once the gateway ends.
const patience = 500 * time.Millisecond

// A server answers the requests of A2A clients. It implements a2asrv.RequestHandler.
type server struct {
	opts    Options
	url     string // of the gateway, without a path
	hosts   []string
	root    string // of the mailbox
	daemon  *link
	changes *changes
	callers access.Callers
	quotas  quotas
	sending singleflight.Group // by the task that a message asks for, or by the message
}

var _ a2asrv.RequestHandler = (*server)(nil)

// open opens the port. It needs the daemon, which knows where the mailbox is.
func open(ctx context.Context, opts Options) (*server, net.Listener, error) {
	local, err := checkListen(opts)
	if err != nil {
		return nil, nil, err
	}
	var secure *tls.Config
	if opts.Cert != "" || opts.Key != "" {
		pair, err := tls.LoadX509KeyPair(opts.Cert, opts.Key)
		if err != nil {
			return nil, nil, fmt.Errorf("read --cert and --key: %w", err)
		}
		secure = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	r, _, err := opts.Location.Connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", opts.Listen)
	if err != nil {
		return nil, nil, fmt.Errorf("open --listen %s: %w", opts.Listen, err)
	}
	s := &server{
		opts: opts, root: r.Root, daemon: &link{at: opts.Location}, changes: newChanges(opts.Location),
		quotas: quotas{rate: opts.Rate},
	}
	s.callers = access.Callers{Judge: s.judge, Again: func(_ *http.Request, since time.Duration) bool { return since > judgedFor }}
	s.name(listener.Addr(), local, secure != nil)
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	return s, listener, nil
}

// judgedFor is how long the judgement of a connection counts.
const judgedFor = 10 * time.Second

// name sets the URL of the gateway, and the hosts by which clients may ask for it.
func (s *server) name(at net.Addr, local, secure bool) {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	_, port, _ := net.SplitHostPort(at.String())
	if local {
		s.hosts = []string{at.String(), "localhost:" + port}
	}
	host := at.String()
	if s.opts.Host != "" {
		host = s.opts.Host
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(host, port)
		}
		s.hosts = append(s.hosts, host)
		if secure && port == "443" {
			s.hosts = append(s.hosts, strings.TrimSuffix(host, ":443"))
		}
	}
	s.url = scheme + "://" + host
}

// checkListen reports whether the address is of the loopback interface. Another one needs a certificate, a
// host name and a sender that can log in.
func checkListen(opts Options) (local bool, err error) {
	host, _, err := net.SplitHostPort(opts.Listen)
	if err != nil {
		return false, exit.With(exit.Usage, "--listen: %w; write an address and a port, such as 127.0.0.1:7070", err)
	}
	if dial.IsLoopback(host) {
		return true, nil
	}
	senders, err := opts.Senders()
	switch {
	case err != nil:
		return false, err
	case opts.Cert == "" || opts.Key == "" || opts.Host == "":
		return false, exit.With(exit.Usage, "--listen %s is not the loopback interface: it needs --cert, --key and --host", opts.Listen)
	case len(senders) == 0:
		return false, exit.With(exit.Usage,
			"--listen %s is not the loopback interface, and no sender has a token; mailboxd gateway token NAME makes one", opts.Listen)
	}
	return false, nil
}

// routes are those of both bindings, and the card.
func (s *server) routes() http.Handler {
	alive := a2asrv.WithTransportKeepAlive(15 * time.Second)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+a2asrv.WellKnownAgentCardPath, s.serveCard)
	mux.Handle("POST /{$}", a2asrv.NewJSONRPCHandler(s, alive))
	rest := a2asrv.NewRESTHandler(s, alive)
	for _, path := range []string{"POST /message:send", "POST /message:stream", "/tasks", "GET /extendedAgentCard"} {
		mux.Handle(path, rest)
	}
	mux.Handle("/tasks/", s.subscription(rest))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { refuse(w, r, noRoute) })
	return mux
}
