package api

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/access/client"
)

// maxCallers limits the connections at one time: one process must not use up the descriptors of
// the daemon.
const maxCallers = 128

// A limitedListener identifies the peers of connections and limits their number. Half of
// the slots are only for people, so that agents can't keep them out.
type limitedListener struct {
	net.Listener
	partOfRun func(peer) (why string)
	ofGroup   bool          // it is the approvers' socket
	slots     chan struct{} // holds a token for each caller
}

func (d *Server) newListener(l net.Listener, ofGroup bool) *limitedListener {
	return &limitedListener{l, d.partOfRun, ofGroup, make(chan struct{}, maxCallers)}
}

// Accept returns the next caller.
func (p *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		who, err := peerOf(conn.(*net.UnixConn))
		if err != nil {
			conn.Close()
			continue
		}
		who.ofGroup = p.ofGroup
		caller := &caller{conn, who, func() {}}
		if p.admit(caller) {
			return caller, nil
		}
		refuseBusy(caller)
	}
}

// admit gives a caller a slot, if there is one.
func (p *limitedListener) admit(c *caller) bool {
	if len(p.slots) >= maxCallers/2 && p.partOfRun(c.peer) != "" {
		return false
	}
	select {
	case p.slots <- struct{}{}:
		c.release = sync.OnceFunc(func() { <-p.slots })
		return true
	default:
		return false
	}
}

// refuseBusy answers that there are too many connections, and closes the connection.
func refuseBusy(c *caller) {
	defer c.Close()
	text, err := json.Marshal(client.Failure{Error: client.Error{Kind: client.Busy, Message: "too many are connected to the daemon; try again soon"}})
	if err != nil {
		return // these values always encode
	}
	// An answer before the request looks like a daemon that died, so read first, but
	// not for long.
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_, _ = c.Read(make([]byte, 4096))
	_ = c.SetWriteDeadline(time.Now().Add(slow)) // it is short, and the first write
	_, _ = fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
}
