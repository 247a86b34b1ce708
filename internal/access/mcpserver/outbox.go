package mcpserver

import (
	"context"
	"sync"

	"mailboxd/envelope"
)

// maxSent is how many lines an outbox remembers.
const maxSent = 1000

// An outbox remembers the lines that we sent until the daemon has taken them:
// until then, a result with such an id answers somebody else. Its zero value is
// empty. It may be used from several goroutines at once.
type outbox struct {
	mu   sync.Mutex // guards sent
	sent map[envelope.ID]func(context.Context) (bool, error)
}

func (o *outbox) add(id envelope.ID, taken func(context.Context) (bool, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sent == nil {
		o.sent = map[envelope.ID]func(context.Context) (bool, error){}
	}
	if len(o.sent) >= maxSent {
		clear(o.sent) // of so many, nobody asks for the early ones any more
	}
	o.sent[id] = taken
}

// waits reports whether a line that we sent with that id was not taken yet.
func (o *outbox) waits(ctx context.Context, id envelope.ID) (bool, error) {
	o.mu.Lock()
	taken := o.sent[id]
	o.mu.Unlock()
	if taken == nil {
		return false, nil
	}
	done, err := taken(ctx)
	if done {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.sent, id)
	}
	return !done && err == nil, err
}
