package access

import (
	"sync"
	"time"
)

// Covered is how long a proof covers what a session sends.
const Covered = 10 * time.Minute

// Grants are the sessions that may send without another proof. Its zero value has none. No grant
// covers a decision.
type Grants struct {
	mu    sync.Mutex // guards until
	until map[string]time.Time
}

// Add has a session send until Covered is over.
func (g *Grants) Add(one Session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until == nil || len(g.until) > 100 {
		g.until = map[string]time.Time{}
	}
	g.until[one.Token] = time.Now().Add(Covered).Round(0) // the monotonic clock stops while the machine sleeps
}

// Has reports whether a session may send.
func (g *Grants) Has(one Session) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return one.Token != "" && time.Now().Before(g.until[one.Token])
}
