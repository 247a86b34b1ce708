package gate_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"mailboxd/internal/sandboxing/gate"
	"mailboxd/internal/sandboxing/sandbox"
)

// names are the addresses of hosts, as somebody who owns the names may set them.
var names = map[string]string{
	"api.example.com": "93.184.215.14", "a.example.org": "93.184.215.14", "metadata.example.com": "169.254.169.254",
	"local.example.com": "127.0.0.1", "lan.example.com": "10.1.2.3", "six.example.com": "::ffff:127.0.0.1", "nat.example.com": "64:ff9b::7f00:1",
}

// opened starts a gate, and returns its address. What it connects to echoes.
func opened(t *testing.T, hosts sandbox.Hosts, refused io.Writer) string {
	t.Helper()
	var work sync.WaitGroup
	g := &gate.Gate{
		Hosts: hosts, Refused: refused, Unneeded: sandbox.UnneededHosts{{Host: "stats.example.com", For: "usage statistics"}},
		Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			if text, ok := names[name]; ok {
				return []netip.Addr{netip.MustParseAddr(text)}, nil
			}
			return nil, errors.New("no such host")
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			work.Go(func() {
				defer theirs.Close()
				fmt.Fprintf(theirs, "%s\n", address)
				_, _ = io.Copy(io.Discard, theirs)
			})
			return ours, nil
		},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	work.Go(func() {
		if err := g.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); work.Wait() })
	return l.Addr().String()
}

// request sends a request to a gate, and returns the status and the next line.
func request(t *testing.T, address, request string) (status int, line string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "%s\r\n\r\n", request)
	in := bufio.NewReader(c)
	r, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode == http.StatusOK {
		line, _ = in.ReadString('\n')
	}
	return r.StatusCode, strings.TrimSpace(line)
}

func TestAGateConnectsToListedPublicHosts(t *testing.T) {
	var refused strings.Builder
	hosts := sandbox.Hosts{"API.example.com", "*.example.org:8443", "metadata.example.com", "local.example.com", "lan.example.com:80", "six.example.com", "nat.example.com", "10.9.9.9:8080"}
	address := opened(t, hosts, &refused)
	for _, test := range []struct{ line, want string }{
		{"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443", "93.184.215.14:443"},
		{"CONNECT api.example.com.:443 HTTP/1.1\r\nHost: x", ""}, // the name with a dot isn't known here; it may be looked up
		{"CONNECT a.example.org:8443 HTTP/1.1\r\nHost: x", "93.184.215.14:8443"},
		{"CONNECT 10.9.9.9:8080 HTTP/1.1\r\nHost: x", "10.9.9.9:8080"}, // written out
		{"CONNECT api.example.com:22 HTTP/1.1\r\nHost: x", ""},
		{"CONNECT example.org:8443 HTTP/1.1\r\nHost: x", ""},
		{"CONNECT evil-example.org:8443 HTTP/1.1\r\nHost: x", ""},
		{"CONNECT a.example.org:443 HTTP/1.1\r\nHost: x", ""},
		{"CONNECT other.net:443 HTTP/1.1\r\nHost: api.example.com:443", ""},
		{"CONNECT 93.184.215.14:443 HTTP/1.1\r\nHost: x", ""},
		{"CONNECT [::1]:443 HTTP/1.1\r\nHost: x", ""},
		{"CONNECT metadata.example.com:443 HTTP/1.1\r\nHost: x", ""},
		{"CONNECT local.example.com:443 HTTP/1.1\r\nHost: x", ""},
		{"CONNECT lan.example.com:80 HTTP/1.1\r\nHost: x", ""},
		{"CONNECT six.example.com:443 HTTP/1.1\r\nHost: x", ""},
		{"CONNECT nat.example.com:443 HTTP/1.1\r\nHost: x", ""},
		{"GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com", ""},
		{"GET / HTTP/1.1\r\nHost: api.example.com", ""},
	} {
		status, line := request(t, address, test.line)
		if line != test.want || test.want == "" && status != http.StatusForbidden {
			t.Errorf("%q = %d, connected to %q; want %q", test.line, status, line, test.want)
		}
	}
	listed := map[string]bool{}
	for line := range strings.Lines(refused.String()) {
		var r gate.Refusal
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Why == "" || listed[r.Host] {
			t.Errorf("the refusal %q: %v", line, err)
		}
		listed[r.Host] = true
	}
	if !listed["other.net:443"] || !listed["metadata.example.com:443"] || listed["api.example.com:443"] {
		t.Errorf("refused are %v", listed)
	}
}

func TestARefusalOfAnUnneededHostSaysWhatItIsFor(t *testing.T) {
	var refused strings.Builder
	address := opened(t, sandbox.Hosts{"api.example.com"}, &refused)
	for _, host := range []string{"stats.example.com:443", "other.net:443"} {
		if status, _ := request(t, address, "CONNECT "+host+" HTTP/1.1\r\nHost: x"); status != http.StatusForbidden {
			t.Errorf("%s = %d; want it refused", host, status)
		}
	}
	want := `{"host":"stats.example.com:443","why":"it is not in the network list of the agent","for":"usage statistics"}
{"host":"other.net:443","why":"it is not in the network list of the agent"}
`
	if refused.String() != want {
		t.Errorf("refused are\n%s\nwant\n%s", refused.String(), want)
	}
}

func TestOnlySoManyRefusalsAreKept(t *testing.T) {
	var refused strings.Builder
	address := opened(t, nil, &refused)
	for i := range 120 {
		request(t, address, fmt.Sprintf("CONNECT h%d.example.com:443 HTTP/1.1\r\nHost: x", i))
	}
	if n := strings.Count(refused.String(), "\n"); n != 100 {
		t.Errorf("%d refusals are kept; want 100", n)
	}
}

func TestEntriesOfANetworkList(t *testing.T) {
	for _, good := range []string{"a.example.com", "*.example.com:8443", "10.0.0.1:80", "[::1]:443", "localhost:3000"} {
		if err := sandbox.CheckHost(good); err != nil {
			t.Errorf("CheckHost(%q) = %v", good, err)
		}
	}
	for _, bad := range []string{"", "*", "https://example.com", "example.com/path", "a b", "example.com:0", "example.com:http", "*.", "a.*.com"} {
		if sandbox.CheckHost(bad) == nil {
			t.Errorf("CheckHost(%q) = nil; want an error", bad)
		}
	}
}
