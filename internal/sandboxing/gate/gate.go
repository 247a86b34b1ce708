// Package gate is the only way from a sandbox to the network: a proxy in a process of its own,
// which connects to listed hosts. The sandbox itself has no network.
package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"mailboxd/internal/sandboxing/sandbox"
)

// A Gate connects a sandbox to listed hosts. Its zero value connects to none.
type Gate struct {
	Hosts    sandbox.Hosts
	Unneeded sandbox.UnneededHosts // the program asks for these, and does not need them
	Refused  io.Writer             // a line for each refused host; nil: none

	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)         // nil: that of the system
	Dial    func(ctx context.Context, network, address string) (net.Conn, error) // nil: that of the system

	mu   sync.Mutex // guards seen
	seen map[string]bool
}

// A Refusal is one line of Refused.
type Refusal struct {
	Host string `json:"host"`
	Why  string `json:"why"`
	For  string `json:"for,omitempty"` // what the program uses the host for, without need; "": it may need it
}

// Limits of a gate. A sandbox isn't trusted.
const (
	maxRefusals   = 100
	maxHost       = 255
	headerTimeout = 30 * time.Second
	dialTimeout   = 30 * time.Second
)

// Serve serves a listener until ctx ends or it is closed.
func (g *Gate) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: g, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: 16 << 10}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	err := server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serve gate: %w", err)
}

// ServeHTTP answers a request of the sandbox. Only CONNECT to a listed host is one.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		g.refuse(w, r.Host, "plain HTTP is not passed on; use https")
		return
	}
	name, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		g.refuse(w, r.Host, "it has no port")
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), dialTimeout)
	defer stop()
	out, why := g.connect(ctx, name, port)
	if why != "" {
		g.refuse(w, r.Host, why)
		return
	}
	defer out.Close()
	in, fast, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var copying sync.WaitGroup
	copying.Go(func() { pass(out, fast) })
	pass(in, out)
	copying.Wait()
}

// pass copies until the end of the input, and passes that on.
func pass(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite() // the other side may still send
		return
	}
	to.Close()
}

// connect connects to a host, or says why not. It dials the address that it has checked: a
// second look-up could give another one.
func (g *Gate) connect(ctx context.Context, name, port string) (net.Conn, string) {
	if !g.Hosts.Allow(name, port) {
		return nil, "it is not in the network list of the agent"
	}
	addrs, err := g.addresses(ctx, name)
	if err != nil {
		return nil, "its name was not found: " + err.Error()
	}
	why := "its name has no address"
	for i, addr := range addrs {
		addr = addr.Unmap() // as a list has it
		if !sandbox.Public(addr) && !g.Hosts.Allow(addr.String(), port) {
			why = fmt.Sprintf("its address %s is not public", addr)
			continue
		}
		conn, err := g.dialOne(ctx, len(addrs)-i, net.JoinHostPort(addr.String(), port))
		if err == nil {
			return conn, ""
		}
		why = "it cannot be reached: " + err.Error()
	}
	return nil, why
}

func (g *Gate) addresses(ctx context.Context, name string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{addr.Unmap()}, nil
	}
	if g.Resolve != nil {
		return g.Resolve(ctx, name)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}

// dialOne dials one of the addresses that are left, within its share of the time.
func (g *Gate) dialOne(ctx context.Context, left int, address string) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer stop()
	}
	return g.dial(ctx, address)
}

func (g *Gate) dial(ctx context.Context, address string) (net.Conn, error) {
	if g.Dial != nil {
		return g.Dial(ctx, "tcp", address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// refuse answers 403 and reports the host once.
func (g *Gate) refuse(w http.ResponseWriter, host, why string) {
	http.Error(w, "mailboxd: "+host+": "+why, http.StatusForbidden)
	r := Refusal{Host: host, Why: why}
	if name, port, err := net.SplitHostPort(host); err == nil {
		r.For = g.Unneeded.For(name, port)
	}
	if len(host) > maxHost {
		host, r.Host = host[:maxHost], host[:maxHost]
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Refused == nil || g.seen[host] || len(g.seen) >= maxRefusals {
		return
	}
	if g.seen == nil {
		g.seen = map[string]bool{}
	}
	g.seen[host] = true
	_ = json.NewEncoder(g.Refused).Encode(r) // a full disk stops no agent
}
