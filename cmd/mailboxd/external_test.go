package main

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// An httpAgent is a service that is an agent. It counts what it is asked, and does something when it is.
type httpAgent struct {
	*httptest.Server
	mu   sync.Mutex // guards what follows
	keys []string   // of the posts
	does []func()   // at the next requests: one each
}

// newHTTPAgent starts a service that answers at /json, /poll and /stream.
func newHTTPAgent(t *testing.T) *httpAgent {
	t.Helper()
	a := &httpAgent{}
	const done = `{"status":"ok","output":{"summary":"did it"},"cost_used":{"tokens":3,"usd_cents":1}}`
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		a.arrive(r)
		switch r.URL.Path {
		case "/denied":
			http.Error(w, "who are you", http.StatusUnauthorized)
		case "/limited":
			w.Header().Set("Retry-After", "3600")
			http.Error(w, "come back", http.StatusTooManyRequests)
		case "/poll":
			w.Header().Set("Location", "/answer")
			w.WriteHeader(http.StatusAccepted)
		default:
			fmt.Fprint(w, done)
		}
	}))
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

func (a *httpAgent) arrive(r *http.Request) {
	a.mu.Lock()
	if r.Method == http.MethodPost {
		a.keys = append(a.keys, r.Header.Get("Idempotency-Key"))
	}
	does := func() {}
	if len(a.does) > 0 {
		does, a.does = a.does[0], a.does[1:]
	}
	a.mu.Unlock()
	does()
}

// expect has the service do something at its next requests, and forget the earlier ones.
func (a *httpAgent) expect(does ...func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys, a.does = nil, does
}

func (a *httpAgent) posts() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.keys)
}

// newUnwatched returns a manager that wants no sign of life, which nobody would read during a test.
func newUnwatched(t *testing.T) *manager {
	t.Helper()
	m := newManager(t)
	m.env = append(m.env, "WATCHDOG_USEC=")
	return m
}

// killHosts kills the hosts of the runs of a mailbox, as they wait for their services.
func (m *manager) killHosts() {
	for _, pid := range processesWith("environ", "MAILBOX_RUN_DIR="+m.dir+"/") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// killAll kills the daemon, its keeper and the hosts, as the machine does when it goes down.
func (m *manager) killAll(serve *os.Process) {
	_ = serve.Kill()
	for _, pid := range processesWith("cmdline", "keeper\x00"+m.dir+"/") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	m.killHosts()
}

func TestNoKillOfHostOrDaemonLeadsToASecondPostOfARun(t *testing.T) {
	m, a := newUnwatched(t), newHTTPAgent(t)
	m.configure(fmt.Sprintf(`agents:
  - {id: plain, http: {url: %[1]s/json}, backoff: 10ms}
  - {id: again, http: {url: %[1]s/json}, backoff: 10ms, idempotent: true}
  - {id: poll, http: {url: %[1]s/poll, mode: poll}, backoff: 10ms}
  - {id: denied, http: {url: %[1]s/denied}}
  - {id: limited, http: {url: %[1]s/limited}}
`, a.URL))
	serve := m.start()
	nothing := func() {}
	for i, c := range []struct {
		name, agent string
		does        []func()
		restart     bool
		want        string
		posts       int
	}{
		{"nothing", "plain", nil, false, `"did it"`, 1},
		{"host at the post", "plain", []func(){m.killHosts}, false, "run_lost", 1},
		{"host at the post of an idempotent agent", "again", []func(){m.killHosts}, false, `"did it"`, 2},
		{"host at the place", "poll", []func(){nothing, m.killHosts}, false, `"did it"`, 1},
		{"daemon at the post", "plain", []func(){func() { _ = serve.Process.Kill() }}, true, `"did it"`, 1},
		{"daemon at the place", "poll", []func(){nothing, func() { _ = serve.Process.Kill() }}, true, `"did it"`, 1},
		{"all at the post", "plain", []func(){func() { m.killAll(serve.Process) }}, true, "run_lost", 1},
		{"all at the place", "poll", []func(){nothing, func() { m.killAll(serve.Process) }}, true, `"did it"`, 1},
	} {
		a.expect(c.does...)
		id := fmt.Sprintf("t%d", i)
		m.run("send", "--agent", c.agent, "--type", "work", "--id", id)
		if c.restart {
			_ = serve.Wait()
			serve = m.start()
		}
		result := m.awaitFile("box/results/" + id + ".json")
		posts := a.posts()
		if !strings.Contains(result, c.want) || len(posts) != c.posts || len(slices.Compact(posts)) != 1 {
			t.Errorf("%s: %d posts with the keys %q, and %s; want %d with one key, and %s", c.name, len(posts), posts, result, c.posts, c.want)
		}
		if c.want == "run_lost" && !strings.Contains(result, "isn't idempotent") {
			t.Errorf("%s: %s; want the reason", c.name, result)
		}
	}
	a.expect()
	for _, agent := range []string{"denied", "limited"} {
		m.run("send", "--agent", agent, "--type", "work", "--id", agent)
	}
	m.awaitOutput(`"denied"`, "ps", "--json", "--state", "held")
	m.awaitOutput(`"limited"`, "ps", "--json", "--state", "held")
	if got := m.run("show", "denied", "--json"); !strings.Contains(got, `"auth_required"`) || !strings.Contains(got, "401") {
		t.Errorf("show denied = %s; want that it waits for a login", got)
	}
	if got := m.run("show", "limited", "--json"); !strings.Contains(got, `"provider_limit"`) || !strings.Contains(got, "429") {
		t.Errorf("show limited = %s; want that it waits for its provider", got)
	}
	m.stop(serve)
}

func TestAServiceIsShownCheckedAndApproved(t *testing.T) {
	m, a := newUnwatched(t), newHTTPAgent(t)
	const token = "t0ken-of-the-service"
	m.env = append(m.env, "STUB_TOKEN="+token)
	config := func(path string) string {
		return fmt.Sprintf("notify: {waits: []}\napproval: {self: allow}\n"+
			"agents: [{id: far, http: {url: \"%s%s\", bearer_env: STUB_TOKEN}}]\n", a.URL, path)
	}
	file := filepath.Join(m.dir, "config.yaml")
	m.configure(config("/json"))
	serve := m.start()
	if out := m.run("agents", "--config", file); !strings.Contains(out, a.URL+"/json") {
		t.Errorf("agents printed %s; want the address", out)
	}
	if out := m.run("doctor", "--json", "--config", file); !strings.Contains(out, "connects to 127.0.0.1:") {
		t.Errorf("doctor printed %s; want that the service is there", out)
	}
	a.expect()
	m.run("send", "--agent", "far", "--type", "work", "--id", "t1", "--approval", "pre", "--requester", "tester")
	m.awaitOutput(`"t1"`, "ps", "--json", "--state", "held")
	plan := m.run("show", "t1")
	if !strings.Contains(plan, "POST "+a.URL+"/json, answers by json, with the token in STUB_TOKEN") {
		t.Errorf("show printed %s; want what is sent where", plan)
	}
	m.configure(config("/other"))
	if err := serve.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	m.await("RELOADING=1")
	m.await("READY=1")
	m.awaitOutput("/other", "show", "t1")
	if posts := a.posts(); len(posts) > 0 {
		t.Errorf("%d posts before the approval", len(posts))
	}
	m.run("approve", "t1", "--unseen")
	if result := m.awaitFile("box/results/t1.json"); !strings.Contains(result, "did it") || len(a.posts()) != 1 {
		t.Errorf("%d posts, and %s; want one, and its answer", len(a.posts()), result)
	}
	m.stop(serve)
	found := ""
	err := filepath.WalkDir(m.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), token) {
				found = path
			}
		}
		return err
	})
	if err != nil || found != "" {
		t.Errorf("the token is in %q, %v; want it in no file", found, err)
	}
}

// The server is mailboxd mcp, which every test has.
func TestAToolOfAServerIsAnAgent(t *testing.T) {
	m := newUnwatched(t)
	m.configure(`tools: [{id: self, command: [mailboxd, mcp], env: [AINL_AGENT_ROOT, XDG_STATE_HOME, XDG_CONFIG_HOME]}]
agents:
  - {id: lister, mcp: {server: self, tool: list_tasks, arguments: {requester: "{{.Description}}"}}}
  - {id: wrong, mcp: {server: self, tool: no_such_tool}}
`)
	file := filepath.Join(m.dir, "config.yaml")
	serve := m.start()
	m.run("send", "--agent", "lister", "--type", "work", "--id", "t1", "--description", "nobody")
	if result := m.awaitFile("box/results/t1.json"); !strings.Contains(result, `"status": "ok"`) || !strings.Contains(result, `"tasks": []`) {
		t.Errorf("result %s; want what the tool returned", result)
	}
	m.run("send", "--agent", "wrong", "--type", "work", "--id", "t2")
	if result := m.awaitFile("box/results/t2.json"); !strings.Contains(result, "has no tool no_such_tool; it has ") {
		t.Errorf("result %s; want which tools there are", result)
	}
	cmd := exec.Command("mailboxd", "doctor", "--json", "--config", file)
	cmd.Env = m.env
	out, _ := cmd.Output() // it fails, since an agent is wrong
	for _, want := range []string{"the tool list_tasks of self, which has ", "the server self has no tool no_such_tool"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("doctor printed %s; want %q", out, want)
		}
	}
	m.stop(serve)
}

// awaitOutput runs a command until it prints a text.
func (m *manager) awaitOutput(want string, args ...string) {
	m.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if strings.Contains(m.run(args...), want) {
			return
		}
	}
	m.t.Fatalf("mailboxd %s didn't print %s in two minutes", strings.Join(args, " "), want)
}
