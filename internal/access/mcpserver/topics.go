package mcpserver

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
)

// topics are the resources that an editor has subscribed to, by their names as it spells them. They may be used from several goroutines at once.
type topics struct {
	wake chan struct{} // something is wanted

	mu     sync.Mutex // guards wanted
	wanted map[string]topic
}

func newTopics() *topics {
	return &topics{wake: make(chan struct{}, 1), wanted: map[string]topic{}}
}

func (s *server) subscribe(_ context.Context, r *mcp.SubscribeRequest) error {
	at, err := topicOf(r.Params.URI)
	if err != nil {
		return notFound(err)
	}
	s.topics.mu.Lock()
	defer s.topics.mu.Unlock()
	s.topics.wanted[r.Params.URI] = at
	select {
	case s.topics.wake <- struct{}{}:
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

// of returns the wanted resources of a kind.
func (t *topics) of(kind string) map[string]topic {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := maps.Clone(t.wanted)
	maps.DeleteFunc(found, func(_ string, at topic) bool { return at.kind != kind })
	return found
}

// follow tells the editor what changes, from the first time that it wants to
// know until ctx ends: of tasks by their events, of results by their files,
// which come after the last event.
func (s *server) follow(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-s.topics.wake:
	}
	var both sync.WaitGroup
	both.Go(func() { s.followTasks(ctx) })
	both.Go(func() { s.followResults(ctx) })
	both.Wait()
}

// followResults tells the editor of each result that it sees for the first
// time, or that is another one than before.
func (s *server) followResults(ctx context.Context) {
	announced := map[string]string{}
	err := s.Watch(ctx, func() {
		for uri, at := range s.topics.of("results") {
			a, err := s.answer(ctx, at.id)
			if err != nil || string(a.Result) == announced[uri] {
				continue // an unknown state is read again
			}
			if announced[uri] = string(a.Result); a.Finished {
				s.announce(ctx, uri)
			}
		}
	})
	if err != nil {
		s.opts.Log.Error().Err(err).Msg("results are not watched any more")
	}
}

// followTasks follows the events of one daemon after the other.
func (s *server) followTasks(ctx context.Context) {
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
	s.announceTask(ctx, "")
	return daemon.Follow(ctx, "", status.LastEvent, func(e client.Event) error {
		if e.Task != "" {
			s.announceTask(ctx, e.Task)
		}
		return ctx.Err()
	})
}

// announceTask announces what is wanted of a task; "" is every task.
func (s *server) announceTask(ctx context.Context, id envelope.ID) {
	for uri, at := range s.topics.of("tasks") {
		if id == "" || at.id == id {
			s.announce(ctx, uri)
		}
	}
}

// announce says that a resource may have changed: a hint, as all events are.
func (s *server) announce(ctx context.Context, uri string) {
	if err := s.mcp.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
		s.opts.Log.Debug().Err(err).Msg("change not announced")
	}
}
