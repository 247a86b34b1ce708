package broker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
	"mailboxd/internal/running/external"
)

// brokerWord is the argument that makes this test binary a broker.
const brokerWord = "play-broker"

// count is a tool that writes the number of a call to a file, and answers each second call only.
func count(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var in struct{ N int }
	if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(os.Getenv(startsVariable)+".calls", os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(f, in.N)
	f.Close()
	if in.N%2 == 0 {
		select {}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "counted"}}}, nil
}

// brokerProcess starts a broker with that server.
func brokerProcess(t *testing.T, dir string, calls int) (p *exec.Cmd, url string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config, err := broker.Config{
		Dir: dir, Token: "token", Listen: "127.0.0.1:0", Limit: calls, Tools: []string{"mcp:stub/*"}, Servers: []broker.Server{{
			Service: task.Service{Server: "stub", Command: []string{self, serverWord}}, Env: []string{startsVariable + "=" + dir + "/starts"},
		}},
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	p = exec.Command(self, brokerWord)
	p.Stdin, p.Stderr = strings.NewReader(config), os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	if url, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return p, strings.TrimSpace(url)
}

func TestABrokerThatIsKilledInTheMiddleOfAHundredCallsMakesNoneTwiceAndLeavesNoneOpen(t *testing.T) {
	t.Parallel()
	const calls = 100
	dir := t.TempDir()
	p, url := brokerProcess(t, dir, calls)
	t.Cleanup(func() { // its server hangs, and a keeper would end it
		for _, pid := range (&rig{t: t, dir: dir}).starts() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	c, err := external.Connect(t.Context(), task.Service{Server: "mailboxd", URL: url}, nil, "token")
	if err != nil {
		t.Fatal(err)
	}
	defer c.End()
	var calling sync.WaitGroup
	errs := make([]error, calls)
	var answered atomic.Int32
	for n := range calls {
		calling.Go(func() {
			arguments := json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))
			if _, errs[n] = c.Call(t.Context(), &mcp.CallToolParams{Name: "stub__counts", Arguments: arguments}); errs[n] == nil {
				answered.Add(1)
			}
		})
	}
	made := func() []string {
		text, _ := os.ReadFile(filepath.Join(dir, "starts.calls"))
		return strings.Fields(string(text))
	}
	for end := time.Now().Add(time.Minute); len(made()) < calls*3/5 || answered.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the server got %d calls in a minute, and answered %d", len(made()), answered.Load())
		}
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // it was killed
	calling.Wait()

	all := made()
	if once := slices.Compact(slices.Sorted(slices.Values(all))); len(once) != len(all) {
		t.Errorf("the server got %d calls, of which %d differ; want none twice", len(all), len(once))
	}
	for n, err := range errs {
		if err != nil && !strings.Contains(err.Error(), url) {
			t.Errorf("call %d failed with %q; want an error that names the address of the broker", n, err)
		}
		if err == nil && n%2 == 0 {
			t.Errorf("call %d was answered, and its server had not answered", n)
		}
	}
	t.Logf("%d of %d calls were answered, %d came to the server", answered.Load(), calls, len(all))
}
