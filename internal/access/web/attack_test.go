package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/demo"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/programs"
	"mailboxd/mailbox"
)

// loopback connects to this machine, whatever the name is, as browsers do for names below localhost.
var loopback = &http.Transport{ResponseHeaderTimeout: patience, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", port))
}}

// A visitor is a browser without a window.
type visitor struct {
	w      *world
	http   *http.Client
	origin string
	token  string
}

// visit exchanges a link for a session.
func (w *world) visit(link string) *visitor {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	origin, secret, _ := strings.Cut(link, "/#")
	v := &visitor{w: w, http: &http.Client{Jar: jar, Transport: loopback}, origin: origin}
	status, text := v.post("/session", url.Values{"secret": {secret}})
	if status != http.StatusOK {
		w.t.Fatalf("POST /session = %d, %s", status, text)
	}
	_, text = v.get("/agents")
	if found := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(text); found != nil {
		v.token = found[1]
	}
	return v
}

// send sends a request, after change has changed it. While the page finds no daemon that has the
// time to greet it, it does nothing, and is asked again.
func (v *visitor) send(method, path string, form url.Values, change func(*http.Request)) (status int, text string) {
	v.w.t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(pause) {
		status, text = v.sendOnce(method, path, form, change)
		if status != http.StatusServiceUnavailable || !time.Now().Before(end) {
			return status, text
		}
	}
}

func (v *visitor) sendOnce(method, path string, form url.Values, change func(*http.Request)) (int, string) {
	v.w.t.Helper()
	r, err := http.NewRequestWithContext(v.w.t.Context(), method, v.origin+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.w.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if change != nil {
		change(r)
	}
	response, err := v.http.Do(r)
	if err != nil {
		v.w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		v.w.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func (v *visitor) get(path string) (int, string) { return v.send(http.MethodGet, path, nil, nil) }

func (v *visitor) post(path string, form url.Values) (int, string) {
	return v.send(http.MethodPost, path, form, nil)
}

// refusal waits for an event of a kind whose data has a text.
func (w *world) refusal(kind task.Kind, has string) {
	w.t.Helper()
	var seen []string
	w.do(func(daemon *client.Client) error {
		events, err := daemon.Events(w.t.Context(), "", 0, 1000)
		for _, e := range events {
			if e.Kind == kind {
				seen = append(seen, string(e.Data))
			}
		}
		return err
	})
	for _, data := range seen {
		if strings.Contains(data, has) {
			return
		}
	}
	w.t.Errorf("no event %s says %q: %v", kind, has, seen)
}

func TestTheAttacksOnThePageAreRefusedAndRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := w.open()
	v := w.visit(link)
	form := url.Values{"token": {v.token}, "agent": {"writer"}}
	if status, _ := v.get("/"); status != http.StatusOK {
		t.Fatalf("GET / = %d; want 200 for the person", status)
	}
	for name, c := range map[string]struct {
		method, path string
		form         url.Values
		change       func(*http.Request)
		says         string
	}{
		"another host":                      {"GET", "/", nil, func(r *http.Request) { r.Host = "localhost:" + r.URL.Port() }, `its host is`},
		"the host of another mailbox":       {"GET", "/", nil, func(r *http.Request) { r.Host = "mbx-other.localhost:" + r.URL.Port() }, "mbx-other"},
		"the same host without the port":    {"GET", "/", nil, func(r *http.Request) { r.Host = r.URL.Hostname() }, `its host is`},
		"a page of another port":            {"POST", "/agents/pause", form, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, "same-site"},
		"another page":                      {"POST", "/agents/pause", form, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, "cross-site"},
		"a program that says nothing of it": {"POST", "/agents/pause", form, func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }, "Sec-Fetch-Site"},
		"a form without its token":          {"POST", "/agents/pause", url.Values{"agent": {"writer"}}, nil, "its form is not one of the session"},
		"a form with another token":         {"POST", "/agents/pause", url.Values{"agent": {"writer"}, "token": {"x"}}, nil, "its form is not one of the session"},
		"another method":                    {"DELETE", "/", nil, nil, "DELETE"},
		"a link that was used":              {"POST", "/session", url.Values{"secret": {link}}, nil, "the link was used before"},
		"a link that never was":             {"POST", "/session", url.Values{"secret": {"x"}}, nil, "there is no such link"},
		"no session":                        {"POST", "/agents/pause", form, func(r *http.Request) { r.Header.Set("Cookie", "mbx-"+r.URL.Port()+"=stolen") }, "it has no session"},
	} {
		t.Run(name, func(t *testing.T) {
			stranger := *v
			if name == "no session" {
				stranger.http = &http.Client{Transport: loopback}
			}
			if status, text := stranger.send(c.method, c.path, c.form, c.change); status != http.StatusForbidden {
				t.Errorf("%s %s = %d, %s; want 403", c.method, c.path, status, text)
			}
			w.refusal(task.KindControlRefused, c.says)
		})
	}
	w.do(func(daemon *client.Client) error {
		paused, err := daemon.Paused(t.Context())
		if len(paused) > 0 {
			t.Errorf("paused: %v; want none", paused)
		}
		return err
	})
	if status, _ := v.post("/agents/pause", form); status != http.StatusOK {
		t.Errorf("the person's own form = %d; want 200", status)
	}
}

func TestWithoutASessionNothingIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := demo.Begin(w.at.Root); err != nil {
		t.Fatal(err)
	}
	origin, _, _ := strings.Cut(w.open(), "/#")
	stranger := &visitor{w: w, http: &http.Client{Transport: loopback}, origin: origin}
	for _, path := range []string{"/", "/tasks", "/tasks/deploy-api-4.2", "/live", "/live?output=migrate-invoices", "/events"} {
		status, text := stranger.get(path)
		if status != http.StatusUnauthorized || strings.Contains(text, "deploy") || strings.Contains(text, w.dir) {
			t.Errorf("GET %s = %d, %s; want 401 and nothing of the mailbox", path, status, text)
		}
	}
}

// fetch is an attacker with the person's cookie: it asks for the page that a file names.
func fetch(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	at, cookie, _ := strings.Cut(string(text), "\n")
	r, err := http.NewRequest(http.MethodGet, at, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	r.Header.Set("Cookie", cookie)
	for end := time.Now().Add(patience); ; <-time.After(pause) {
		response, err := (&http.Client{Transport: loopback}).Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusServiceUnavailable || !time.Now().Before(end) {
			fmt.Println("STATUS", response.StatusCode, bytes.Contains(body, []byte("for you")))
			return
		}
	}
}

// loot writes the address and the cookie of a session where an attacker finds them.
func (v *visitor) loot(file string) {
	v.w.t.Helper()
	at, err := url.Parse(v.origin)
	if err != nil {
		v.w.t.Fatal(err)
	}
	cookies := v.http.Jar.Cookies(at)
	if len(cookies) != 1 {
		v.w.t.Fatalf("cookies: %v; want one", cookies)
	}
	if err := os.WriteFile(file, []byte(v.origin+"/\n"+cookies[0].String()), 0o644); err != nil {
		v.w.t.Fatal(err)
	}
}

func TestARunGetsNothingWithAStolenCookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(w.dir, "loot")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.OpenFile(w.config, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(config, "  - {id: thief, exec: {command: [%q, fetch, %q], output: text}}\n", self, file)
	if err := config.Close(); err != nil {
		t.Fatal(err)
	}
	w.stop(w.daemon)
	w.serve()
	v := w.visit(w.open())
	v.loot(file)
	if said, err := exec.Command(self, "fetch", file).Output(); err != nil || !strings.Contains(string(said), "STATUS 200 true") {
		t.Fatalf("outside of a run: %s, %v; want the page, so that the cookie is a good one", said, err)
	}
	line := `{"schema_version": "1.0", "task_id": "steal", "requester_id": "x", "target_agent": "thief", "target_role": "executor", "task_type": "steal", "description": "", "input": {"refs": [], "payload": {}}}`
	if _, _, err := mailbox.Append(w.at.Root, []byte(line)); err != nil {
		t.Fatal(err)
	}
	if summary := w.summary("steal"); !strings.Contains(summary, "STATUS 403 false") {
		t.Errorf("a run with the cookie gets %q; want 403", summary)
	}
	w.refusal(task.KindControlRefused, "GET /")
}

// summary waits for the result of a task.
func (w *world) summary(id envelope.ID) string {
	w.t.Helper()
	raw := w.result(id)
	var result struct {
		Output struct {
			Summary string `json:"summary"`
		} `json:"output"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		w.t.Fatalf("result %s: %v", raw, err)
	}
	return result.Output.Summary
}

func TestAnotherUserGetsNothingWithAStolenCookie(t *testing.T) {
	t.Parallel()
	thief, dir := programs.AsAnotherUser(t, "fetch")
	w := newWorld(t)
	w.visit(w.open()).loot(filepath.Join(dir, "loot"))
	thief.Args = append(thief.Args, filepath.Join(dir, "loot"))
	if said, err := thief.CombinedOutput(); err != nil || !strings.Contains(string(said), "STATUS 403 false") {
		t.Errorf("another user with the cookie: %s, %v; want 403", said, err)
	}
	w.refusal(task.KindControlRefused, "of another user, uid 65534")
}

func TestAFormOfAPageOfAnotherPortIsRefused(t *testing.T) {
	b, w := browser(t), newWorld(t)
	b.enter(w.open())
	origin := eval[string](b, `location.origin`)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<form method="post" action="%s/agents/pause"><input name="agent" value="writer"></form><script>document.forms[0].submit()</script>`, origin)
	}))
	defer evil.Close()
	at, err := url.Parse(evil.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(origin, "http://"), ":")
	b.do(chromedp.Navigate("http://" + host + ":" + at.Port()))
	b.sees("This request was refused")
	w.refusal(task.KindControlRefused, "it comes from another page")
}

func TestServeListensOnNoTCPPort(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", w.daemon.Process.Pid))
	if err != nil || len(fds) == 0 {
		t.Fatalf("the descriptors of the daemon: %v, %v", fds, err)
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile("/proc/net/" + table)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			target, _ := os.Readlink(fd) // it may be closed by now
			inode, isSocket := strings.CutPrefix(target, "socket:[")
			if isSocket && strings.Contains(string(text), " "+strings.TrimSuffix(inode, "]")+" ") {
				t.Errorf("the daemon has a socket of %s", table)
			}
		}
	}
}

func TestMarkupAndControlCharactersAreText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visit(w.open())
	const bad = `<script>alert(1)</script><img src=x onerror=alert(2)>"'` + "\u202e\u0007\u001b[31m"
	quoted, err := json.Marshal(bad)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		fmt.Sprintf(`{"schema_version": "1.0", "task_id": "<b>t1", "requester_id": "<i>x", "target_agent": "deployer", "target_role": "executor", "task_type": "<i>t", "description": %s, "input": {"refs": [], "payload": {"seconds": 0, "x": %s}}}`, quoted, quoted),
		fmt.Sprintf(`{"schema_version": "1.0", "task_id": "t2", "requester_id": "x", "target_agent": "tester", "target_role": "executor", "task_type": "t", "description": %s, "input": {"refs": [], "payload": {"seconds": 0, "fail": %s}}}`, quoted, quoted),
		fmt.Sprintf(`{"schema_version": "1.0", "task_id": "t3", "requester_id": "x", "target_agent": %s, "target_role": "executor", "task_type": "t", "description": "", "input": {"refs": [], "payload": {}}}`, quoted),
		fmt.Sprintf(`{"type":"delegation_notice","task_id":"t4","sender_id":"orchestrator","recipient_id":"analyst","context_summary":%s,"attachments":[]}`, strings.Replace(string(quoted), `"`, `"ask if anything is unclear `, 1)),
	} {
		if _, _, err := mailbox.Append(w.at.Root, []byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	w.result("t2")
	w.result("t3")
	w.state("t4", task.Held)
	w.state("<b>t1", task.Held)
	for _, path := range []string{"/", "/tasks", "/tasks/%3Cb%3Et1", "/tasks/t2", "/tasks/t3", "/tasks/t4", "/thread/t4", "/runs/t4", "/events", "/agents", "/budgets", "/tasks?text=" + url.QueryEscape(bad)} {
		status, text := v.get(path)
		if status != http.StatusOK {
			t.Errorf("GET %s = %d, %s", path, status, text)
		}
		for _, raw := range []string{"<script>alert", "<img", "<b>t1", "<i>", "\u202e", "\u0007", "\u001b"} {
			if strings.Contains(text, raw) {
				t.Errorf("GET %s has %q", path, raw)
			}
		}
	}
	if _, text := v.get("/tasks/t2"); !strings.Contains(text, "\\u202e") || !strings.Contains(text, "&lt;script&gt;") {
		t.Errorf("the page does not show what was written: %s", text)
	}
}
