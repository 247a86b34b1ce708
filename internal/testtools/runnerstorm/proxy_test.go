package runnerstorm

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A proxy passes connections on to the hub, and can be cut.
type proxy struct {
	address string // where it listens
	target  string
	work    sync.WaitGroup

	mu    sync.Mutex
	until time.Time // until when it refuses connections
	open  map[net.Conn]bool
}

// newProxy starts a proxy, until the end of the test.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: listener.Addr().String(), target: target, open: map[net.Conn]bool{}}
	p.work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.pass(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.cut(time.Hour)
		p.work.Wait()
	})
	return p
}

// pass passes the bytes of a connection on, in both directions, until one side ends.
func (p *proxy) pass(near net.Conn) {
	defer near.Close()
	if !p.keep(near) {
		return
	}
	defer p.drop(near)
	far, err := net.DialTimeout("tcp", p.target, time.Second)
	if err != nil {
		return
	}
	defer far.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(near, far)
		_ = near.Close()
	})
	_, _ = io.Copy(far, near)
	_ = far.Close()
	back.Wait()
}

// keep adds a connection, and reports false while the proxy is cut.
func (p *proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Now().Before(p.until) {
		return false
	}
	p.open[conn] = true
	return true
}

func (p *proxy) drop(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, conn)
}

// cut ends all connections, and refuses new ones for a time.
func (p *proxy) cut(pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(pause)
	for conn := range p.open {
		_ = conn.Close()
	}
}
