package gate

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
)

func TestASilentAddressLeavesTimeForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gate{
			Hosts: []string{"api.example.com"},
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("2606:4700::1"), netip.MustParseAddr("93.184.215.14")}, nil
			},
			Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
				if strings.HasPrefix(address, "[") {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				ours, theirs := net.Pipe()
				return ours, theirs.Close()
			},
		}
		ctx, stop := context.WithTimeout(t.Context(), dialTimeout)
		defer stop()
		conn, why := g.connect(ctx, "api.example.com", "443")
		if why != "" {
			t.Fatalf("connect = %q; want the second address", why)
		}
		conn.Close()
	})
}

func TestAListedAddressOfANameIsReached(t *testing.T) {
	g := &Gate{
		Hosts: []string{"lan.example.com", "10.1.2.3"},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("::ffff:10.1.2.3")}, nil // as the resolver returns it
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			return ours, theirs.Close()
		},
	}
	conn, why := g.connect(t.Context(), "lan.example.com", "443")
	if why != "" {
		t.Fatalf("connect = %q; want a connection", why)
	}
	conn.Close()
}
