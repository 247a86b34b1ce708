package api

import (
	"net"
	"sync"
)

// maxCallers is how many may be connected at once: what one process opens
// must not use up the descriptors of the daemon.
const maxCallers = 128

// A porch is the listening socket. Who comes in is asked who they are, and sent
// away when there are too many.
type porch struct {
	net.Listener
	room chan struct{} // holds a token for each caller
}

func newPorch(l net.Listener) *porch { return &porch{l, make(chan struct{}, maxCallers)} }

// Accept returns the next caller.
func (p *porch) Accept() (net.Conn, error) {
	for {
		conn, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case p.room <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		leave := sync.OnceFunc(func() { <-p.room })
		who, err := peerOf(conn.(*net.UnixConn))
		if err != nil {
			leave()
			conn.Close()
			continue
		}
		return &caller{conn, who, leave}, nil
	}
}
