// Package mcpserver lets editors and their models send tasks, watch them and
// answer them, in the Model Context Protocol. A task that is sent is a
// line in the mailbox, and no tool approves one.
package mcpserver

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
)

// ProtocolVersion returns the newest version of the protocol that the server speaks.
func ProtocolVersion() string { return mcp.SupportedProtocolVersions()[0] }

// A Mailbox is how the server reaches one. All of it may be called from several
// goroutines at once, and none of it outlives its context.
type Mailbox struct {
	Root string // where results/ lies

	// Read calls do with a client of the daemon, or of the ledger without one; nil when
	// there is no mailbox yet.
	Read func(ctx context.Context, do func(*client.Client) error) error

	// Agents lists the agents that the requester may send tasks to, as they are configured now.
	Agents func() ([]Agent, error)

	// Send appends a line. Taken reports whether the daemon has read it since;
	// its error says that it was refused in a way that leaves an earlier result
	// in place.
	Send func(ctx context.Context, line []byte) (taken func(context.Context) (bool, error), err error)

	// Watch calls look whenever a result may be there, until ctx ends.
	Watch func(ctx context.Context, look func()) error

	// Daemon reaches the daemon; an error that wraps client.ErrDown says that
	// there is none. Who gets it closes it.
	Daemon func(ctx context.Context) (*client.Client, error)
}

// Options say for whom the server speaks.
type Options struct {
	Requester string      // requester_id of what is sent
	Parent    envelope.ID // the task that the server is part of a run of; "" for none
	// NearMisses says whether fields are refused that are nearly controls.
	NearMisses envelope.Mode
	Version    string
	Log        zerolog.Logger // never where the protocol is spoken
}

// A server answers the editors at one transport.
type server struct {
	Mailbox
	opts   Options
	mcp    *mcp.Server
	outbox outbox
	topics *topics
	claims *claims
	work   sync.WaitGroup // what runs beside the tools
}

// Serve speaks the protocol until ctx ends or the editor hangs up, which is
// nil.
func Serve(ctx context.Context, at mcp.Transport, box Mailbox, opts Options) error {
	s := &server{Mailbox: box, opts: opts, topics: newTopics(), claims: newClaims()}
	s.mcp = mcp.NewServer(
		&mcp.Implementation{Name: "mailboxd", Title: "mailboxd", Version: opts.Version},
		&mcp.ServerOptions{
			Instructions:       s.instructions(),
			Capabilities:       &mcp.ServerCapabilities{},
			SubscribeHandler:   s.subscribe,
			UnsubscribeHandler: s.unsubscribe,
		})
	s.addTools()
	s.addResources()
	s.mcp.AddReceivingMiddleware(s.survive)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.work.Go(func() { s.follow(ctx) })
	s.work.Go(func() { s.claims.keep(ctx, s.renew) })
	err := s.mcp.Run(ctx, at)
	stop()
	s.work.Wait()
	if errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// retry is how long after a daemon was not there it is asked for again, by
// what runs beside the tools.
const retry = 2 * time.Second
