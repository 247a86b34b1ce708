package access

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// A Judge judges a process that connected, and records why a request is refused. It returns
// why the request is refused; "" lets it in. With an error no request is let in. Quiet, nothing is
// recorded.
type Judge func(ctx context.Context, pid int, request, refused string, quiet bool) (why string, err error)

// Callers are the processes of this machine at the other ends of connections. Judge and Again are set
// before the first request. The server of the requests has ConnContext.
type Callers struct {
	Judge Judge
	Again func(r *http.Request, since time.Duration) bool // whether the process of a request is judged again, some time after it was

	reports reports
}

// Check returns why the processes that have the connection of a request open may not ask for it; "" if they may.
func (all *Callers) Check(r *http.Request) (why string, err error) {
	return callerIn(r.Context()).check(r, all)
}

// IsLocal reports whether the connection of a context comes from this machine.
func IsLocal(ctx context.Context) bool {
	c := callerIn(ctx)
	return c.remote.Addr().IsLoopback() || c.remote.Addr() == c.local.Addr()
}

// Report records a refusal and returns its reason. Not every one of a flood is recorded.
func (all *Callers) Report(r *http.Request, why string) string {
	if all.reports.full(time.Now()) {
		return why
	}
	pid := 0
	if owners, err := callerIn(r.Context()).owners(); err == nil {
		pid = owners[0]
	}
	if _, err := all.judge(context.WithoutCancel(r.Context()), pid, requestOf(r), why); err != nil {
		why += " (and the refusal could not be recorded: " + err.Error() + ")"
	}
	return why
}

// judge has a process judged. Refusals beyond the limit are not recorded.
func (all *Callers) judge(ctx context.Context, pid int, request, refused string) (string, error) {
	why, err := all.Judge(ctx, pid, request, refused, all.reports.full(time.Now()))
	if why != "" {
		all.reports.add()
	}
	return why, err
}

// requestOf names a request, without its query.
func requestOf(r *http.Request) string { return r.Method + " " + r.URL.Path }

// A caller is a connection. Its process is judged once, and again when Callers.Again says so.
type caller struct {
	remote, local netip.AddrPort

	mu   sync.Mutex // guards seen and why
	seen time.Time  // when it was judged; zero: not yet
	why  string
}

type callerKey struct{}

// ConnContext gives the requests of a connection its addresses.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, callerKey{}, &caller{remote: addressOf(conn.RemoteAddr()), local: addressOf(conn.LocalAddr())})
}

func addressOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	p := tcp.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

func callerIn(ctx context.Context) *caller {
	c, ok := ctx.Value(callerKey{}).(*caller)
	if !ok {
		return &caller{}
	}
	return c
}

func (c *caller) owners() ([]int, error) { return ownersOf(c.remote, c.local) }

// check returns why the process of a connection is refused.
func (c *caller) check(r *http.Request, all *Callers) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen.IsZero() || all.Again(r, time.Since(c.seen)) {
		why, err := c.judgeAll(r, all.judge)
		if err != nil {
			return "", fmt.Errorf("find out who connected: %w", err)
		}
		c.seen, c.why = time.Now(), why
	}
	return c.why, nil
}

// judgeAll judges every process that has the connection open.
func (c *caller) judgeAll(r *http.Request, judge func(context.Context, int, string, string) (string, error)) (string, error) {
	return judgeOwners(c.owners, func(pid int, unknown string) (string, error) {
		return judge(r.Context(), pid, requestOf(r), unknown)
	})
}

// mostLooks limits how often the owners of a connection are looked up anew.
const mostLooks = 5

// judgeOwners judges the processes that have a connection open. They have to have it open still
// when they were judged, so that no number of a process stands for another one. A process that
// starts another one shares its connections with it for a moment, so the owners are judged anew
// when they have changed, a few times. Without a pid, judge gets the reason why the owners are
// unknown.
func judgeOwners(owners func() ([]int, error), judge func(pid int, unknown string) (string, error)) (string, error) {
	before, err := owners()
	for range mostLooks {
		if err != nil {
			return judge(0, err.Error())
		}
		for _, pid := range before {
			if why, err := judge(pid, ""); err != nil || why != "" {
				return why, err
			}
		}
		after, lost := owners()
		if lost == nil && slices.Equal(before, after) {
			return "", nil
		}
		before, err = after, lost
	}
	return judge(0, "the owner of the connection changed")
}

// reports limits how many refusals are recorded, so that a flood of requests is no flood of events.
type reports struct {
	mu    sync.Mutex // guards begun and count
	begun time.Time
	count int
}

// mostReports is how many refusals are recorded in a minute.
const mostReports = 20

// full reports whether the minute has all its refusals.
func (p *reports) full(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.begun) > time.Minute {
		p.begun, p.count = now, 0
	}
	return p.count >= mostReports
}

// add counts a refusal.
func (p *reports) add() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
}
