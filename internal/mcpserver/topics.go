package mcpserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/envelope"
	"mailboxd/internal/client"
)

// topics are the resources that an editor wants to hear of, by their names as
// it spells them. They may be used from several goroutines at once.
type topics struct {
	wake chan struct{} // something is wanted

	mu     sync.Mutex // guards wanted
	wanted map[string]envelope.ID
}

func (s *server) subscribe(_ context.Context, r *mcp.SubscribeRequest) error {
	at, err := topicOf(r.Params.URI)
	if err != nil {
		return err
	}
	t := &s.topics
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wanted == nil {
		t.wanted = map[string]envelope.ID{}
	}
	t.wanted[r.Params.URI] = at.id
	select {
	case t.wake <- struct{}{}:
	default:
	}
	return nil
}

func (s *server) unsubscribe(_ context.Context, r *mcp.UnsubscribeRequest) error {
	s.topics.mu.Lock()
	defer s.topics.mu.Unlock()
	delete(s.topics.wanted, r.Params.URI)
	return nil
}

// about lists the wanted resources of a task; "" is every task.
func (t *topics) about(id envelope.ID) (uris []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uri, of := range t.wanted {
		if id == "" || of == id {
			uris = append(uris, uri)
		}
	}
	return uris
}

// follow tells the editor what changes, from the first time that it wants to
// know until ctx ends.
func (s *server) follow(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-s.topics.wake:
	}
	for ctx.Err() == nil {
		err := s.stream(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, client.ErrDown) {
			s.opts.Log.Warn().Err(err).Msg("events ended; asking for them again")
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// stream tells the editor of each event until the daemon stops. What happened
// before the stream began, nobody was told: so everything may have changed.
func (s *server) stream(ctx context.Context) error {
	daemon, err := s.Daemon(ctx)
	if err != nil {
		return err
	}
	defer daemon.Close()
	status, err := daemon.Status(ctx)
	if err != nil {
		return err
	}
	s.announce(ctx, "")
	return daemon.Follow(ctx, "", status.LastEvent, func(e client.Event) error {
		if e.Task != "" {
			s.announce(ctx, e.Task)
		}
		return ctx.Err()
	})
}

// announce says that what is wanted about a task may have changed: a hint, as
// all events are.
func (s *server) announce(ctx context.Context, id envelope.ID) {
	for _, uri := range s.topics.about(id) {
		if err := s.mcp.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
			s.opts.Log.Debug().Err(err).Msg("change not announced")
		}
	}
}
