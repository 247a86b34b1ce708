package owner

import (
	"context"
	"errors"
	"sync"
	"time"

	"mailboxd/internal/running/carrier"
)

// hubFaults say why the hub keeps no files for a runner, such as that its disk is full. Such a runner gets no job with
// files until the fault is old: the next job tries again.
type hubFaults struct {
	mu  sync.Mutex
	all map[string]hubFault // by runner
}

type hubFault struct {
	why string
	at  time.Time
}

// faultLasts is how long a fault counts that doesn't come again.
const faultLasts = time.Minute

// note takes how keeping something ended.
func (h *hubFaults) note(runner string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err == nil:
		delete(h.all, runner)
	case !errors.Is(err, context.Canceled):
		if h.all == nil {
			h.all = map[string]hubFault{}
		}
		h.all[runner] = hubFault{err.Error(), time.Now()}
	}
}

// clear forgets all faults: the hub is another one, or was away.
func (h *hubFaults) clear() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.all)
}

// of returns the fault of a runner; "" for none.
func (h *hubFaults) of(runner string, now time.Time) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.all[runner]; now.Sub(f.at) < faultLasts {
		return f.why
	}
	return ""
}

// ensure makes the buckets of runners, and returns for which it did, for which that failed, and why.
func (f *files) ensure(ctx context.Context, link *carrier.Owner, names []string) (made, failed []string, why error) {
	for _, name := range names {
		err := link.Ensure(ctx, name)
		f.hubFaults.note(name, err)
		if err != nil {
			failed, why = append(failed, name), errors.Join(why, err)
		} else {
			made = append(made, name)
		}
	}
	return made, failed, why
}
