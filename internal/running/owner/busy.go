package owner

import "sync"

// mostBusy limits what is done at once for the messages of a runner.
const mostBusy = 64

// busy counts the functions that are at work for the messages of each runner. A message that comes while there are too
// many isn't answered, so its runner sends it again.
type busy struct {
	mu  sync.Mutex
	all map[string]int
}

// enter reports whether there may be one more.
func (b *busy) enter(runner string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil {
		b.all = map[string]int{}
	}
	if b.all[runner] >= mostBusy {
		return false
	}
	b.all[runner]++
	return true
}

// leave ends one.
func (b *busy) leave(runner string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[runner]--; b.all[runner] == 0 {
		delete(b.all, runner)
	}
}
