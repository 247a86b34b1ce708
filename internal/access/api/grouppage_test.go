package api_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mailboxd/internal/access/api"
	"mailboxd/internal/access/client"
)

// Another user at the approvers' socket must not write control.refused, nor learn which process
// belongs to which run.
func TestApproversOfAGroupDontReachThePageJudge(t *testing.T) {
	path := client.SocketPath{Dir: filepath.Join(t.TempDir(), "approvers"), Name: "s", Group: ownGroup(t)}
	h := openWith(t, filepath.Join(t.TempDir(), "run"), api.Options{
		GroupSocket: path, RunOf: func(pid int) (string, error) {
			if pid == os.Getppid() {
				return "it is a process of the run of secret-task", nil
			}
			return "", nil
		}, Approvers: func(int) []string { return []string{"bob"} },
	})
	caller := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return path.Dial(ctx) }}}
	defer caller.CloseIdleConnections()
	post := func(body string) (int, string) {
		response, err := caller.Post("http://mailboxd"+client.Base+"/page", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(text)
	}
	if status, text := post(`{"pid":` + strconv.Itoa(os.Getppid()) + `,"request":"x"}`); status != http.StatusNotFound {
		t.Errorf("another user asks whose process a pid is: %d %s", status, text)
	}
	if status, text := post(`{"pid":1,"request":"GET /x","refused":"FORGED ` + strings.Repeat("x", 50000) + `"}`); status != http.StatusNotFound {
		t.Errorf("another user writes an event: %d, %d bytes", status, len(text))
	}
	events, err := h.Events(t.Context(), "", 0, 100)
	for _, e := range events {
		t.Errorf("event %s of %d bytes: %.200s", e.Kind, len(e.Data), e.Data)
	}
	if err != nil {
		t.Error(err)
	}
}
