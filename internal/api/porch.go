package api

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/client"
)

// maxCallers is how many may be connected at once: what one process opens
// must not use up the descriptors of the daemon.
const maxCallers = 128

// A porch is the listening socket. Who comes in is asked who they are, and sent
// away when there are too many. Half of the room is for people: agents must not
// keep those out who would end them.
type porch struct {
	net.Listener
	partOfRun func(peer) (why string)
	room      chan struct{} // holds a token for each caller
}

func (d *Door) newPorch(l net.Listener) *porch {
	return &porch{l, d.partOfRun, make(chan struct{}, maxCallers)}
}

// Accept returns the next caller.
func (p *porch) Accept() (net.Conn, error) {
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
		caller := &caller{conn, who, func() {}}
		if p.admit(caller) {
			return caller, nil
		}
		sendAway(caller)
	}
}

// admit gives a caller a place, if there is one for them.
func (p *porch) admit(c *caller) bool {
	if len(p.room) >= maxCallers/2 && p.partOfRun(c.peer) != "" {
		return false
	}
	select {
	case p.room <- struct{}{}:
		c.left = sync.OnceFunc(func() { <-p.room })
		return true
	default:
		return false
	}
}

// sendAway says that there are too many, and hangs up.
func sendAway(c *caller) {
	defer c.Close()
	text, err := json.Marshal(client.Failure{Error: client.Error{Kind: client.Busy, Message: "too many are connected to the daemon; try again soon"}})
	if err != nil {
		return // it has nothing that could fail
	}
	// An answer that comes before its question looks like a daemon that died;
	// but nobody is waited for long while others stand at the door.
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_, _ = c.Read(make([]byte, 4096))
	_ = c.SetWriteDeadline(time.Now().Add(slow)) // it is short, and the first that is written there
	_, _ = fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
}
