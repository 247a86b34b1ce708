package gateway_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/programs"
)

// raw sends a request with a token, after change has changed it.
func (w *world) raw(method, path, token, body string, change func(*http.Request)) (status int, text string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if change != nil {
		change(r)
	}
	response, err := (&http.Client{Transport: w.far}).Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// refused checks that an event of a refusal has a text.
func (w *world) refused(has string) {
	w.t.Helper()
	events := w.events(task.KindControlRefused)
	if !slices.ContainsFunc(events, func(data string) bool { return strings.Contains(data, has) && strings.Contains(data, `"gateway"`) }) {
		w.t.Errorf("no event %s of the gateway says %q: %q", task.KindControlRefused, has, events)
	}
}

func TestARequestWithoutALoginIsRefusedAndRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	get := `{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}`
	for name, c := range map[string]struct {
		token  string
		change func(*http.Request)
		status int
		says   string
	}{
		"no token":      {"", nil, 401, "it has no token"},
		"a wrong token": {"mbx_" + strings.Repeat("x", 43), nil, 401, "its token is not one of a sender"},
		"a token in another scheme": {"", func(r *http.Request) { r.Header.Set("Authorization", "Basic "+w.tokens["acme"]) }, 401,
			"it has no token"},
		"a foreign host": {w.tokens["acme"], func(r *http.Request) { r.Host = "evil.example:7070" }, 403, `its host is`},
		"another port":   {w.tokens["acme"], func(r *http.Request) { r.Host = "127.0.0.1:1" }, 403, "127.0.0.1:1"},
	} {
		for _, at := range [][2]string{{"GET", "/.well-known/agent-card.json"}, {"GET", "/tasks"}, {"POST", "/"}, {"GET", "/nothing"}} {
			status, text := w.raw(at[0], at[1], c.token, get, c.change)
			if status != c.status || strings.Contains(text, "skills") {
				t.Errorf("%s: %s %s = %d, %s; want %d", name, at[0], at[1], status, text, c.status)
			}
		}
		w.refused(c.says)
	}
	for _, data := range w.events(task.KindControlRefused) {
		if strings.Contains(data, w.tokens["acme"]) || strings.Contains(data, "mbx_xxx") {
			t.Errorf("an event has a token: %s", data)
		}
	}
}

func TestATaskOfAnotherSenderIsNotFoundAndRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine := w.send(w.login("acme", a2a.TransportProtocolJSONRPC), message("approved", "Do it."), true)
	for _, id := range []string{string(mine.ID), "there-is-none"} {
		for _, at := range [][2]string{{"GET", "/tasks/" + id}, {"POST", "/tasks/" + id + ":cancel"}, {"POST", "/tasks/" + id + ":subscribe"}} {
			if status, text := w.raw(at[0], at[1], w.tokens["other"], "{}", nil); status != 404 || !strings.Contains(text, "TASK_NOT_FOUND") {
				t.Errorf("%s %s of another sender = %d, %s; want 404", at[0], at[1], status, text)
			}
		}
		w.refused(id)
	}
	for _, method := range []string{"GetTask", "CancelTask", "SubscribeToTask"} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"id":%q}}`, method, mine.ID)
		if _, text := w.raw("POST", "/", w.tokens["other"], body, nil); !strings.Contains(text, "-32001") {
			t.Errorf("%s of another sender = %s; want the error -32001", method, text)
		}
	}
	reply := fmt.Sprintf(`{"message":{"messageId":"m","role":"ROLE_USER","taskId":%q,"parts":[{"text":"yes"}]}}`, mine.ID)
	if status, text := w.raw("POST", "/message:send", w.tokens["other"], reply, nil); status != 404 {
		t.Errorf("a reply of another sender = %d, %s; want 404", status, text)
	}
	w.refused("sender other, process")
	list, err := w.login("other", a2a.TransportProtocolJSONRPC).ListTasks(t.Context(), &a2a.ListTasksRequest{})
	if err != nil || len(list.Tasks) != 0 || list.TotalSize != 0 {
		t.Errorf("ListTasks of another sender = %+v, %v; want none", list, err)
	}
}

func TestASenderApprovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine := w.send(w.login("acme", a2a.TransportProtocolJSONRPC), message("approved", "Do it."), true)
	for _, path := range []string{"/tasks/ID:approve", "/tasks/ID/approve", "/v1/tasks/ID/approve"} {
		path = strings.Replace(path, "ID", string(mine.ID), 1)
		if status, text := w.raw("POST", path, w.tokens["acme"], `{"unseen":true}`, nil); status != 400 && status != 404 {
			t.Errorf("POST %s = %d, %s; want 400 or 404", path, status, text)
		}
	}
	reply := fmt.Sprintf(`{"message":{"messageId":"m","role":"ROLE_USER","taskId":%q,"parts":[{"text":"approved"}]}}`, mine.ID)
	status, text := w.raw("POST", "/message:send", w.tokens["acme"], reply, nil)
	if status != 400 || !strings.Contains(text, "UNSUPPORTED_OPERATION") {
		t.Errorf("a message for a task that waits for an approval = %d, %s; want 400", status, text)
	}
	w.do(func(daemon *client.Client) error {
		row, err := daemon.Latest(t.Context(), envelope.ID(mine.ID))
		if row.State != task.Held {
			t.Errorf("the task is %s; want it held", row.State)
		}
		return err
	})
}

func TestAProcessOfARunIsRefusedWithAStolenTokenAndOneOfAnotherMailboxIsNot(t *testing.T) {
	t.Parallel()
	w, far := newWorld(t), newWorld(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(self, "ask", w.url, w.tokens["acme"]).Output(); err != nil || string(said) != "STATUS 200\n" {
		t.Fatalf("outside of a run: %s, %v; want the tasks, so that the token is a good one", said, err)
	}
	got := w.send(w.login("acme", a2a.TransportProtocolJSONRPC), message("thief", "Steal it."), false)
	if artifact(got) != "STATUS 403" {
		t.Errorf("a run with the token gets %q; want 403", artifact(got))
	}
	w.refused("it has")
	far.write("url", w.url)
	far.write("token", w.tokens["acme"])
	got = far.send(far.login("acme", a2a.TransportProtocolJSONRPC), message("thief", "Ask it."), false)
	if artifact(got) != "STATUS 200" {
		t.Errorf("a run of another mailbox with the token gets %q; want 200", artifact(got))
	}
	far.write("token", "mbx_wrong")
	got = far.send(far.login("acme", a2a.TransportProtocolJSONRPC), message("thief", "Ask it again."), false)
	if artifact(got) != "STATUS 401" {
		t.Errorf("a run of another mailbox without a token gets %q; want 401", artifact(got))
	}
}

func TestAnotherUserIsRefusedWithAStolenToken(t *testing.T) {
	t.Parallel()
	thief, _ := programs.AsAnotherUser(t, "ask")
	w := newWorld(t)
	thief.Args = append(thief.Args, w.url, w.tokens["acme"])
	if said, err := thief.CombinedOutput(); err != nil || string(said) != "STATUS 403\n" {
		t.Errorf("another user with the token: %s, %v; want 403", said, err)
	}
	w.refused("of another user, uid 65534")
}

func TestATokenThatIsRemovedFromTheConfigurationCountsNoLonger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := filepath.Join(w.dir, "config.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := bytes.Cut(text, []byte("  - name: other"))
	w.write("config.yaml", string(before))
	if status, text := w.raw("GET", "/tasks", w.tokens["other"], "", nil); status != 401 {
		t.Errorf("GET /tasks with a token that is gone = %d, %s; want 401", status, text)
	}
	if status, text := w.raw("GET", "/tasks", w.tokens["acme"], "", nil); status != 200 {
		t.Errorf("GET /tasks with the other token = %d, %s; want 200", status, text)
	}
	w.write("config.yaml", "senders: [{")
	if status, text := w.raw("GET", "/tasks", w.tokens["acme"], "", nil); status != 503 {
		t.Errorf("GET /tasks with a broken configuration = %d, %s; want 503", status, text)
	}
}

func TestWithoutADaemonTheGatewaySaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if status, text := w.raw("GET", "/tasks", w.tokens["acme"], "", nil); status != 200 {
		t.Fatalf("GET /tasks = %d, %s; want 200", status, text)
	}
	w.stop(w.daemon)
	for _, want := range []int{500, 503} { // over the same connection, whose process is known, and over another one
		status, text := w.raw("GET", "/tasks", w.tokens["acme"], "", nil)
		private := strings.Contains(text, w.dir) || strings.Contains(text, "sock")
		if status != want || !strings.Contains(text, "mailboxd is not running;") || private {
			t.Errorf("GET /tasks without a daemon = %d, %s; want %d, and nothing of this machine", status, text, want)
		}
		w.far.CloseIdleConnections()
	}
	w.serve()
	if status, text := w.raw("GET", "/tasks", w.tokens["acme"], "", nil); status != 200 {
		t.Errorf("GET /tasks with the next daemon = %d, %s; want 200", status, text)
	}
}

func TestAwayFromLoopbackTheGatewayNeedsACertificateAHostAndASender(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := filepath.Join(w.dir, "config.yaml")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--listen", "0.0.0.0:0"}, "it needs --cert, --key and --host"},
		{[]string{"--listen", "192.0.2.1:7070", "--cert", "a", "--key", "b"}, "it needs --cert, --key and --host"},
		{[]string{"--listen", "7070"}, "such as 127.0.0.1:7070"},
		{[]string{"--listen", "127.0.0.1:0", "--cert", "none.pem", "--key", "none.pem"}, "read --cert and --key"},
	} {
		cmd := w.command(slices.Concat([]string{"gateway", "--config", config}, c.args)...)
		stderr := cmd.Stderr.(*bytes.Buffer)
		if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("gateway %q: %v, %s; want %q", c.args, err, stderr, c.says)
		}
	}
	w.write("config.yaml", "root: "+filepath.Join(w.dir, "box")+"\n")
	cmd := w.command("gateway", "--config", config, "--listen", "0.0.0.0:0", "--cert", "a", "--key", "b", "--host", "mail.example")
	stderr := cmd.Stderr.(*bytes.Buffer)
	if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "no sender has a token") {
		t.Errorf("gateway without a sender: %v, %s; want an error", err, stderr)
	}
}

func TestAwayFromLoopbackClientsAskByTheHostOfTheCertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stop(w.gateway)
	pair := httptest.NewUnstartedServer(nil)
	pair.StartTLS() // its certificate is for example.com
	defer pair.Close()
	made := pair.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(made.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	w.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]})))
	w.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	files := []string{"--cert", filepath.Join(w.dir, "cert.pem"), "--key", filepath.Join(w.dir, "key.pem")}
	w.open(append(files, "--listen", "0.0.0.0:0", "--host", "example.com")...)
	if !strings.HasPrefix(w.url, "https://example.com:") {
		t.Fatalf("the gateway is at %s; want the host", w.url)
	}
	at := strings.TrimPrefix(w.url, "https://")
	port := at[strings.LastIndex(at, ":"):]
	far := pair.Client().Transport.(*http.Transport).Clone()
	far.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1"+port)
	}
	for _, c := range []struct {
		host, token string
		want        int
	}{{"", w.tokens["acme"], 200}, {"", "", 401}, {"127.0.0.1" + port, w.tokens["acme"], 403}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/.well-known/agent-card.json", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		r.Header.Set("Authorization", "Bearer "+c.token)
		response, err := (&http.Client{Transport: far}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		card, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != c.want || c.want == 200 && !strings.Contains(string(card), `"url":"`+w.url+`"`) {
			t.Errorf("GET the card by the host %q = %d, %s; want %d", c.host, response.StatusCode, card, c.want)
		}
	}
	response, err := http.Get("http://127.0.0.1" + port + "/tasks")
	if err == nil {
		_ = response.Body.Close()
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("GET without TLS = %d; want 400", response.StatusCode)
		}
	}
}

func TestTheSkillsOfTheCardAreTheAgentsThatASenderMayAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config, err := os.ReadFile(filepath.Join(w.dir, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.write("approved.json", strings.Replace(files["approved.json"], `"role_types"`, `"trust_domain":"lab","role_types"`, 1))
	w.write("config.yaml", "policy: {trust: [{from: external, to: lab, allow: false}]}\n"+string(config)+"    agents: [echo]\n")
	for sender, want := range map[string]string{"acme": "asking echo failing login thief waiting", "other": "echo"} {
		c := w.login(sender, a2a.TransportProtocolJSONRPC)
		card, err := c.GetExtendedAgentCard(t.Context(), &a2a.GetExtendedAgentCardRequest{})
		if err != nil {
			t.Fatal(err)
		}
		var skills []string
		for _, skill := range card.Skills {
			skills = append(skills, skill.ID)
		}
		if slices.Sort(skills); strings.Join(skills, " ") != want {
			t.Errorf("the skills for %s are %q; want %s", sender, skills, want)
		}
	}
	only := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("Say it."))
	if got := w.send(w.login("other", a2a.TransportProtocolJSONRPC), only, false); artifact(got) != "done" {
		t.Errorf("a message without an agent gets %q; want the answer of the only one", artifact(got))
	}
	before, _ := w.last()
	for sender, agent := range map[string]string{"other": "waiting", "acme": "approved"} {
		body := fmt.Sprintf(`{"message":{"messageId":"m","role":"ROLE_USER","metadata":{"agent":%q},"parts":[{"text":"x"}]}}`, agent)
		status, text := w.raw("POST", "/message:send", w.tokens[sender], body, nil)
		if status != 400 || !strings.Contains(text, "INVALID_PARAMS") {
			t.Errorf("a message of %s to %s = %d, %s; want 400", sender, agent, status, text)
		}
	}
	if after, _ := w.last(); after != before {
		t.Errorf("messages to agents that the sender may not ask left %d events; want none", after-before)
	}
}
