package realagents_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
)

// sdkServer is the server with which the Go SDK of MCP tries itself. It has the tools that the scenarios call.
const sdkServer = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"

// startBroker starts mailboxd's broker with that server, and returns its address and token.
func startBroker(t *testing.T) (at *url.URL, token string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "everything-server")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, sdkServer).CombinedOutput(); err != nil {
		t.Fatalf("build the server of the SDK: %v\n%s", err, out)
	}
	token = "a-token"
	config, err := broker.Config{
		Dir: dir, Token: token, Listen: "127.0.0.1:0", Tools: []string{"mcp:sdk/*"},
		Servers: []broker.Server{{Service: task.Service{Server: "sdk", Command: []string{program}}, Env: []string{"HOME=" + dir}}},
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Getenv(daemonVariable), "broker")
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stderr = []string{"HOME=" + dir}, dir, strings.NewReader(config), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the broker ended with %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("read the address of the broker: %v", err)
	}
	if at, err = url.Parse(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	return at, token
}

// proxied returns the address of a proxy to the broker, since the conformance tests can send no token, and know the
// tools by the names that their server has. The proxy changes only these two things.
func proxied(t *testing.T, at *url.URL, token string) string {
	t.Helper()
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: at.Scheme, Host: at.Host})
			r.Out.Host = r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
		ModifyResponse: func(r *http.Response) error {
			text, err := io.ReadAll(r.Body)
			setBody(&r.Body, r.Header, &r.ContentLength, bytes.ReplaceAll(text, []byte(`"name":"sdk__`), []byte(`"name":"`)))
			return err
		},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		setBody(&r.Body, r.Header, &r.ContentLength, withServer(text))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + at.Path
}

func setBody(body *io.ReadCloser, header http.Header, size *int64, text []byte) {
	*body, *size = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	header.Set("Content-Length", strconv.Itoa(len(text)))
}

// withServer puts the server before the name of a tool that is called.
func withServer(text []byte) []byte {
	var message, params map[string]jsontext.Value
	if json.Unmarshal(text, &message) != nil || string(message["method"]) != `"tools/call"` {
		return text
	}
	if json.Unmarshal(message["params"], &params) != nil {
		return text
	}
	params["name"] = append([]byte(`"sdk__`), params["name"][1:]...)
	changed, err := json.Marshal(params)
	if err == nil {
		message["params"] = changed
		changed, err = json.Marshal(message)
	}
	if err != nil {
		return text
	}
	return changed
}

func TestTheToolBrokerConformsToMCP(t *testing.T) {
	needPrograms(t)
	t.Parallel()
	at, token := startBroker(t)
	out, passed := conformance(t, "server", "--url", proxied(t, at, token), "--suite", "all")
	if !passed {
		t.Error(out)
	}
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "tools-call-simple-text", "dns-rebinding-protection"} {
		if !strings.Contains(out, "✓ "+scenario+": ") {
			t.Errorf("the scenario %s did not pass:\n%s", scenario, out)
		}
	}
}
