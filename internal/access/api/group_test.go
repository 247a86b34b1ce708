package api_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/access/api"
	"mailboxd/internal/access/client"
)

// A group of this process that isn't the one of root.
func ownGroup(t *testing.T) int {
	t.Helper()
	if os.Geteuid() == 0 {
		return 1
	}
	if gid := os.Getgid(); gid != 0 {
		return gid
	}
	t.Skip("no group but that of root")
	return 0
}

func TestApproversOfAGroupReachNothingButTheirOwnDecisions(t *testing.T) {
	path := client.SocketPath{Dir: filepath.Join(t.TempDir(), "approvers"), Name: "s", Group: ownGroup(t)}
	h := openWith(t, filepath.Join(t.TempDir(), "run"), api.Options{
		GroupSocket: path, RunOf: stranger, Approvers: func(int) []string { return []string{"bob"} },
	})
	h.remember(t, "t1")
	caller := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return path.Dial(ctx) }}}
	defer caller.CloseIdleConnections()
	control, approvers := api.Paths()
	if len(approvers) < 8 || len(control) < 20 {
		t.Fatalf("%d and %d requests are too few", len(approvers), len(control))
	}
	for _, line := range slices.Concat(control, approvers) {
		method, at, _ := strings.Cut(line, " ")
		want := http.StatusNotFound // also for a task that waits for nobody's decision
		if !strings.Contains(at, "{id}") && slices.Contains(approvers, line) {
			want = http.StatusOK
		}
		request, err := http.NewRequestWithContext(t.Context(), method, "http://mailboxd"+strings.NewReplacer("{id}", "t1", "{agent}", "a").Replace(at)+"?decision=approved", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		response, err := caller.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.Body.Close(); response.StatusCode != want {
			t.Errorf("%s is answered with %d; want %d", line, response.StatusCode, want)
		}
	}
}

func TestASocketOfAGroupIsOnlyInADirectoryThatOthersCantChange(t *testing.T) {
	group := ownGroup(t)
	for mode, want := range map[os.FileMode]string{
		0o750: "", 0o710: "", 0o755: "others may look into its directory", 0o770: "its group may write", 0o700: "its group may not look",
	} {
		p := client.SocketPath{Dir: filepath.Join(t.TempDir(), "approvers"), Name: "s", Group: group}
		if err := os.Mkdir(p.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(p.Dir, -1, group); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p.Dir, mode); err != nil {
			t.Fatal(err)
		}
		listener, err := p.Listen(t.Context())
		if err == nil {
			if _, err := p.Listen(t.Context()); err == nil || !strings.Contains(err.Error(), "another daemon answers there") {
				t.Errorf("Listen beside another daemon = %v; want an error", err)
			}
			listener.Close()
		}
		if got := errorText(err); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("Listen in a directory of mode %o = %q; want %q", mode, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
