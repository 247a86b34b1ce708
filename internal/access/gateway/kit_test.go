package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/programs"
)

// program is mailboxd, built by TestMain.
var program string

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "ask" {
		ask(os.Args[2], os.Args[3])
		return
	}
	os.Exit(func() int {
		built, remove, err := programs.Build("gateway-test-", "../../../cmd/mailboxd")
		if err != nil {
			panic(err)
		}
		defer remove()
		program = built
		return m.Run()
	}())
}

// ask asks a gateway for the tasks of a sender, and prints the status: that is what a thief does with a token.
func ask(url, token string) {
	r, err := http.NewRequest(http.MethodGet, url+"/tasks", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("STATUS", response.StatusCode)
}

// patience is how long tests wait for anything: machines may be slow.
const patience = 2 * time.Minute

// A world is a mailbox with a daemon and a gateway.
type world struct {
	t      testing.TB
	dir    string
	at     reader.Location
	tokens map[string]string // of senders
	url    string            // of the gateway
	far    *http.Transport   // has the connections to it

	daemon, gateway *exec.Cmd
}

// settings is the configuration of a world. DIR is its directory, and SELF the program of the tests.
const settings = `root: DIR/box
state_dir: DIR/state
limits: {shutdown_grace: 0s}
conversation: {question_timeout: 0s}
approvers:
  - {name: ann, uid: %d}
agents:
  - {id: echo, exec: {command: [sh, -c, 'echo done'], output: text}}
  - {id: failing, exec: {command: [sh, -c, 'exit 3'], output: text}}
  - {id: approved, manifest: approved.json, exec: {command: [sh, -c, 'echo approved'], output: text}}
  - {id: waiting, exec: {command: [sh, -c, 'while ! test -e DIR/go; do sleep 0.05; done; echo gone'], output: text}}
  - {id: asking, dialect: cap, exec: {command: [sh, DIR/ask.sh]}}
  - {id: login, profile: claude, exec: {command: [sh, -c, 'cat DIR/login.json; exit 1']}}
  - {id: thief, exec: {command: [sh, -c, 'SELF ask "$(cat DIR/url)" "$(cat DIR/token)"'], output: text}}
`

// files are those that the agents of a world have.
var files = map[string]string{
	"approved.json": `{"schema_version":"1.0","agent_id":"approved","name":"a","version":"1","description":"d",` +
		`"role_types":["executor"],` +
		`"available_tools":[],"execution_mode":"executing","requires_human_approval":{"default":true}}`,
	"login.json": `{"is_error":true,"session_id":"s-1","total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0},` +
		`"subtype":"success",` +
		`"api_error_status":null,"result":"Not logged in · Please run /login","type":"result"}`,
	"ask.sh": `said="{\"type\":\"message\",\"task_id\":\"$MAILBOX_TASK_ID\",\"sender_id\":\"asking\",\"recipient_id\":\"acme\","
if grep -q Berlin "$MAILBOX_CONVERSATION_FILE"; then
	echo "$said\"content\":\"It rains there.\"}"
else
	echo "$said\"content\":\"Which city?\",\"expects_reply\":true}"
fi
`,
}

// newWorld starts a daemon and a gateway with the senders acme and other.
func newWorld(t testing.TB) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{
		t: t, dir: dir, tokens: map[string]string{}, far: &http.Transport{},
		at: reader.Location{Root: filepath.Join(dir, "box"), StateDir: filepath.Join(dir, "state")},
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := strings.NewReplacer("DIR", dir, "SELF", self).Replace(fmt.Sprintf(settings, os.Getuid())) + "senders:\n"
	for _, name := range []string{"acme", "other"} {
		text, entry, _ := strings.Cut(w.run("gateway", "token", name), "senders:\n")
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "mbx_") {
				w.tokens[name] = strings.TrimSpace(line)
			}
		}
		config += entry
	}
	w.write("config.yaml", config)
	for name, text := range files {
		w.write(name, text)
	}
	w.serve()
	w.open("--listen", "127.0.0.1:0")
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// run runs a command of mailboxd, and returns what it prints.
func (w *world) run(args ...string) string {
	w.t.Helper()
	cmd := w.command(args...)
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("%s: %v, %s", cmd, err, cmd.Stderr)
	}
	return string(out)
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "HOME="+w.dir, "XDG_STATE_HOME="+w.dir, "XDG_CONFIG_HOME="+w.dir)
	cmd.Stderr = &bytes.Buffer{}
	return cmd
}

// serve starts the daemon.
func (w *world) serve() {
	w.t.Helper()
	w.daemon = w.start(w.command("serve", "--config", filepath.Join(w.dir, "config.yaml")))
	ctx, stop := context.WithTimeout(w.t.Context(), patience)
	defer stop()
	if err := w.at.AwaitDaemon(ctx); err != nil {
		w.t.Fatalf("the daemon does not serve: %v; its log:\n%s", err, w.daemon.Stderr)
	}
}

// open starts the gateway, and waits until it says where it is. A port that it had before can be that of a
// connection of another test for a moment.
func (w *world) open(args ...string) {
	w.t.Helper()
	for end := time.Now().Add(patience); !w.openOnce(args, time.Now().After(end)); {
		<-time.After(50 * time.Millisecond)
	}
}

func (w *world) openOnce(args []string, last bool) bool {
	w.t.Helper()
	cmd := w.command(append([]string{"gateway", "--config", filepath.Join(w.dir, "config.yaml")}, args...)...)
	out, in, err := os.Pipe()
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = in
	w.gateway = w.start(cmd)
	_ = in.Close()
	line := make([]byte, 200)
	n, err := out.Read(line)
	_, url, found := strings.Cut(strings.TrimSpace(string(line[:n])), " at ")
	if err != nil && !last {
		w.stop(cmd)
		if strings.Contains(fmt.Sprint(cmd.Stderr), "address already in use") {
			return false
		}
	}
	if err != nil || !found {
		w.t.Fatalf("the gateway prints %q, %v; its log:\n%s", line[:n], err, cmd.Stderr)
	}
	w.url = url
	w.write("url", url)
	w.write("token", w.tokens["acme"])
	return true
}

func (w *world) start(cmd *exec.Cmd) *exec.Cmd {
	w.t.Helper()
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { w.stop(cmd) })
	return cmd
}

// stop ends a program that was started, and kills one that doesn't end.
func (w *world) stop(cmd *exec.Cmd) {
	if cmd.ProcessState != nil {
		return
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	if !late.Stop() {
		w.t.Errorf("%s did not end; its log:\n%s", cmd, cmd.Stderr)
	}
}

// restart ends daemon and gateway, and starts them again. The gateway keeps its port.
func (w *world) restart() {
	w.t.Helper()
	w.stop(w.gateway)
	w.far.CloseIdleConnections()
	w.far = &http.Transport{} // a request over a connection of the gateway before would fail
	w.stop(w.daemon)
	w.serve()
	w.open("--listen", strings.TrimPrefix(w.url, "http://"))
}

// do calls f with the daemon.
func (w *world) do(f func(*client.Client) error) {
	w.t.Helper()
	r, daemon, err := w.at.Connect(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(f(daemon), r.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// events returns the data of the events of a kind, as text.
func (w *world) events(kind task.Kind) (data []string) {
	w.t.Helper()
	w.do(func(daemon *client.Client) error {
		all, err := daemon.Events(w.t.Context(), "", 0, 1000)
		for _, e := range all {
			if e.Kind == kind {
				data = append(data, string(e.Data))
			}
		}
		return err
	})
	return data
}

// bindings are those of the protocol that the gateway serves.
var bindings = []a2a.TransportProtocol{a2a.TransportProtocolJSONRPC, a2a.TransportProtocolHTTPJSON}

// login returns a client of the library with the token of a sender.
func (w *world) login(sender string, binding a2a.TransportProtocol) *a2aclient.Client {
	w.t.Helper()
	header := "Bearer " + w.tokens[sender]
	resolver := agentcard.NewResolver(&http.Client{Transport: w.far})
	card, err := resolver.Resolve(w.t.Context(), w.url, agentcard.WithRequestHeader("Authorization", header))
	if err != nil {
		w.t.Fatalf("read the card: %v", err)
	}
	withToken := &http.Client{Transport: bearer{w, header}}
	factory := a2aclient.NewFactory(
		a2aclient.WithConfig(a2aclient.Config{PreferredTransports: []a2a.TransportProtocol{binding}}),
		a2aclient.WithJSONRPCTransport(withToken), a2aclient.WithRESTTransport(withToken),
	)
	c, err := factory.CreateFromCard(w.t.Context(), card)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Destroy() })
	return c
}

// bearer adds the header of a login to requests.
type bearer struct {
	w      *world
	header string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", b.header)
	return b.w.far.RoundTrip(r)
}

// message returns a message to an agent.
func message(agent, text string) *a2a.Message {
	m := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text))
	m.SetMeta("agent", agent)
	return m
}

// send sends a message, and returns its task. Immediately, it doesn't wait for the end.
func (w *world) send(c *a2aclient.Client, m *a2a.Message, immediately bool) *a2a.Task {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), patience)
	defer stop()
	got, err := c.SendMessage(ctx, &a2a.SendMessageRequest{Message: m, Config: &a2a.SendMessageConfig{ReturnImmediately: immediately}})
	if err != nil {
		w.t.Fatalf("send %q: %v; the log of the gateway:\n%s", m.Parts[0].Text(), err, w.gateway.Stderr)
	}
	found, ok := got.(*a2a.Task)
	if !ok {
		w.t.Fatalf("send %q = %T; want a task", m.Parts[0].Text(), got)
	}
	return found
}

// words is the text of the status of a task, and artifact that of its artifacts.
func words(t *a2a.Task) string {
	if t.Status.Message == nil {
		return ""
	}
	return t.Status.Message.Parts[0].Text()
}

func artifact(t *a2a.Task) (text string) {
	for _, one := range t.Artifacts {
		for _, part := range one.Parts {
			text += part.Text()
		}
	}
	return text
}
