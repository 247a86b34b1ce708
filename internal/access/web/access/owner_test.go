package access

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheOwnerOfAConnectionIsTheProcessThatHasItOpen(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, to := range []string{l.Addr().String(), strings.Replace(l.Addr().String(), "127.0.0.1", "[::ffff:127.0.0.1]", 1)} {
		mine, err := net.Dial("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		remote, local := addressOf(conn.RemoteAddr()), addressOf(conn.LocalAddr())
		if pids, err := ownersOf(remote, local); err != nil || !slices.Contains(pids, os.Getpid()) {
			t.Errorf("ownersOf(%s) = %v, %v; want this process", to, pids, err)
		}
		_ = mine.Close()
		_, _ = conn.Read(make([]byte, 1)) // the other end is closed
		if pids, err := ownersOf(remote, local); !errors.Is(err, ErrNoOwner) {
			t.Errorf("ownersOf(closed) = %v, %v; want %v", pids, err, ErrNoOwner)
		}
		_ = conn.Close()
	}
}

func TestAddressesOfTheKernelAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1F90":                         "127.0.0.1:8080",
		"0000000000000000FFFF00000100007F:0050": "127.0.0.1:80",
		"00000000000000000000000001000000:0050": "[::1]:80",
	} {
		if got, ok := parseAddress(text); !ok || got != netip.MustParseAddrPort(want) {
			t.Errorf("parseAddress(%s) = %v, %v; want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{"", ":", "0100007F", "0100007:50", "x:50", "0100007F:x"} {
		if got, ok := parseAddress(text); ok {
			t.Errorf("parseAddress(%q) = %v; want none", text, got)
		}
	}
}

func TestALinkOpensOnceAndForTwoMinutes(t *testing.T) {
	var l links
	now := time.Now()
	first, late := l.add(now), l.add(now)
	if err := l.take(first, now.Add(time.Minute)); err != nil {
		t.Errorf("take = %v; want nil", err)
	}
	if err := l.take(first, now.Add(time.Minute)); !errors.Is(err, errLinkUsed) {
		t.Errorf("take again = %v; want %v", err, errLinkUsed)
	}
	if err := l.take(late, now.Add(LinkTime+time.Second)); !errors.Is(err, errLinkLate) {
		t.Errorf("take late = %v; want %v", err, errLinkLate)
	}
	if err := l.take("", now); !errors.Is(err, errLinkNone) {
		t.Errorf("take nothing = %v; want %v", err, errLinkNone)
	}
}

func TestTheHostOfAPageIsOneLabelOfItsMailbox(t *testing.T) {
	for name, want := range map[string]string{
		"home-me-box-12345678":              "mbx-home-me-box-12345678.localhost",
		"Home_Me-1":                         "mbx-home-me-1.localhost",
		strings.Repeat("x", 80) + "-abcdef": "mbx-" + strings.Repeat("x", 52) + "-abcdef.localhost",
	} {
		if got := HostOf(name); got != want {
			t.Errorf("HostOf(%s) = %s; want %s", name, got, want)
		}
	}
}
