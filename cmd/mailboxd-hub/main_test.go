package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rs/zerolog"

	"mailboxd/internal/operating/hub"
	"mailboxd/internal/running/carrier"
)

// The test binary is mailboxd-hub itself, so that the tests use a server in its own process.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mailboxd-hub": main})
}

// A testHub is a hub in a directory of a test.
type testHub struct {
	t   *testing.T
	dir string
	url string
}

// makeHub makes a hub, which doesn't serve yet.
func makeHub(t *testing.T, args ...string) *testHub {
	h := &testHub{t: t, dir: filepath.Join(t.TempDir(), "hub")}
	h.run("", append([]string{"init"}, args...)...)
	return h
}

// run runs a command, whose error has to contain want; "" for none.
func (h *testHub) run(want string, args ...string) string {
	h.t.Helper()
	out, err := exec.Command("mailboxd-hub", append([]string{"--dir", h.dir}, args...)...).CombinedOutput()
	if (err == nil) != (want == "") || !strings.Contains(string(out), want) {
		h.t.Fatalf("mailboxd-hub %s: %v\n%s\nwant %q", strings.Join(args, " "), err, out, want)
	}
	return string(out)
}

// serve serves the hub until the test ends.
func (h *testHub) serve(listen string) {
	h.t.Helper()
	cmd := exec.Command("mailboxd-hub", "serve", "--until-input-ends", "--listen", listen, "--dir", h.dir)
	var log bytes.Buffer
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		in.Close() // the hub ends with its input
		if err := cmd.Wait(); err != nil {
			h.t.Errorf("the hub ends with %v", err)
		}
		if h.t.Failed() {
			h.t.Logf("the log of the hub:\n%s", &log)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		h.t.Fatal("the hub doesn't serve: ", err)
	}
	h.url = strings.Fields(line)[len(strings.Fields(line))-1]
}

// connect logs in with a file of credentials, and says in denied what the server refuses.
func (h *testHub) connect(file string, inbox string) (conn *nats.Conn, denied chan error) {
	h.t.Helper()
	conn, denied, err := h.tryConnect(file, inbox)
	for end := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(end); { // it was enrolled just now
		time.Sleep(50 * time.Millisecond)
		conn, denied, err = h.tryConnect(file, inbox)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(conn.Close)
	return conn, denied
}

func (h *testHub) tryConnect(file, inbox string) (conn *nats.Conn, denied chan error, err error) {
	credentials, err := carrier.ReadCredentials(filepath.Join(h.dir, file))
	if err != nil {
		return nil, nil, err
	}
	options, err := credentials.Options()
	if err != nil {
		return nil, nil, err
	}
	denied = make(chan error, 100)
	options = append(options, nats.CustomInboxPrefix(inbox), nats.NoReconnect(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	conn, err = nats.Connect(h.url, options...)
	return conn, denied, err
}

// mustDeny waits until the server has refused something.
func mustDeny(t *testing.T, what string, denied chan error) {
	t.Helper()
	select {
	case err := <-denied:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s: %v; want it refused", what, err)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("%s: is not refused", what)
	}
}

func TestARunnerUsesItsOwnSubjectsAlone(t *testing.T) {
	h := makeHub(t)
	h.serve("127.0.0.1:0")
	h.run("", "enroll", "a") // while the hub serves
	h.run("", "enroll", "b")
	owner, _ := h.connect("hub.nk", "_INBOX.mailboxd.owner")
	a, denied := h.connect("credentials/a.nk", "_INBOX.mailboxd.a")
	if _, err := owner.Subscribe("mbx.mailboxd.>", func(m *nats.Msg) { _ = m.Respond([]byte(m.Subject)) }); err != nil {
		t.Fatal(err)
	}
	if err := owner.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"mbx.mailboxd.claim.a", "mbx.mailboxd.done.a.token"} {
		if answer, err := a.Request(subject, nil, 10*time.Second); err != nil || string(answer.Data) != subject {
			t.Errorf("request %s: %v", subject, err)
		}
	}
	for _, subject := range []string{
		"mbx.mailboxd.claim.b", "mbx.mailboxd.done.b.token", "mbx.other.claim.a", "_INBOX.mailboxd.owner.x", "$SYS.REQ.SERVER.PING",
		"$JS.API.STREAM.CREATE.x", "$JS.API.STREAM.DELETE.OBJ_in_a", "$JS.API.CONSUMER.CREATE.OBJ_out_a", "$JS.API.DIRECT.GET.OBJ_out_a",
		"$O.in_a.C.x", "$O.out_b.C.x",
	} {
		if err := a.Publish(subject, nil); err != nil {
			t.Fatal(err)
		}
		mustDeny(t, "publish "+subject, denied)
	}
	for _, subject := range []string{
		">", "mbx.mailboxd.to.b.>", "mbx.mailboxd.claim.a", "_INBOX.>", "_INBOX.mailboxd.b.>", "mbx.mailboxd.to.>",
	} {
		if _, err := a.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		mustDeny(t, "subscribe "+subject, denied)
	}
}

func TestARunnerReadsWhatIsForItAndWritesWhatIsOfIt(t *testing.T) {
	h := makeHub(t)
	h.run("", "enroll", "a")
	h.serve("127.0.0.1:0")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	streams := func(conn *nats.Conn) jetstream.JetStream {
		js, err := jetstream.New(conn)
		if err != nil {
			t.Fatal(err)
		}
		return js
	}
	conn, _ := h.connect("hub.nk", "_INBOX.mailboxd.owner")
	owner := streams(conn)
	for _, bucket := range []string{"in_a", "out_a", "in_b"} {
		store, err := owner.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: bucket})
		if err == nil {
			_, err = store.PutString(ctx, "file", "text of "+bucket)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	made, err := owner.Stream(ctx, "OBJ_out_a")
	if err != nil {
		t.Fatal(err)
	}
	c := made.CachedInfo().Config
	c.AllowDirect = false // as the owner makes it
	if _, err := owner.UpdateStream(ctx, c); err != nil {
		t.Fatal(err)
	}
	conn, denied := h.connect("credentials/a.nk", "_INBOX.mailboxd.a")
	runner := streams(conn)
	in, err := runner.ObjectStore(ctx, "in_a")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := in.GetString(ctx, "file"); err != nil || text != "text of in_a" {
		t.Errorf("the file for the runner is %q, %v", text, err)
	}
	out, err := runner.ObjectStore(ctx, "out_a")
	if err == nil {
		_, err = out.PutString(ctx, "answer", "of a")
	}
	if err != nil {
		t.Errorf("the runner can't put a file: %v", err)
	}
	short, stop := context.WithTimeout(ctx, 200*time.Millisecond)
	defer stop()
	if _, err := runner.ObjectStore(short, "in_b"); err == nil {
		t.Error("the runner reads what is for another one")
	}
	mustDeny(t, "read in_b", denied)
}

func TestARemovedRunnerLosesItsConnection(t *testing.T) {
	h := makeHub(t)
	h.run("", "enroll", "a")
	h.serve("127.0.0.1:0")
	credentials, err := os.ReadFile(filepath.Join(h.dir, "credentials/a.nk"))
	if err != nil {
		t.Fatal(err)
	}
	conn, _ := h.connect("credentials/a.nk", "_INBOX.mailboxd.a")
	closed := make(chan struct{})
	conn.SetClosedHandler(func(*nats.Conn) { close(closed) })
	h.run("", "remove", "a")
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the runner is still connected")
	}
	if err := os.WriteFile(filepath.Join(h.dir, "credentials/a.nk"), credentials, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.tryConnect("credentials/a.nk", "_INBOX.mailboxd.a"); err == nil { // the error depends on who closes the connection first
		t.Error("a removed runner logs in; want it refused")
	}
	h.run("", "enroll", "a")
	h.connect("credentials/a.nk", "_INBOX.mailboxd.a")
}

func TestARunnerThatIsEnrolledWhileTheHubStartsIsLetIn(t *testing.T) {
	h := makeHub(t)
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan error, 1)
	var serving sync.WaitGroup
	serving.Go(func() {
		err := hub.Serve(ctx, hub.Options{Dir: h.dir, Listen: "127.0.0.1:0", Log: zerolog.Nop(), Ready: func(url string) {
			h.url = url
			_, err := hub.Enroll(h.dir, "a")
			ready <- err
		}})
		if err != nil {
			ready <- err
		}
	})
	t.Cleanup(func() { cancel(); serving.Wait() })
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	h.connect("credentials/a.nk", "_INBOX.mailboxd.a")
}

func TestAwayFromLoopbackTheHubHasACertificate(t *testing.T) {
	h := makeHub(t, "--listen", "0.0.0.0:4222", "--host", "localhost")
	h.serve("127.0.0.1:0")
	if !strings.HasPrefix(h.url, "tls://localhost:") {
		t.Errorf("the hub is reached at %s; want TLS", h.url)
	}
	h.connect("hub.nk", "_INBOX.mailboxd.owner")
	h.url = strings.Replace(h.url, "localhost", "127.0.0.1", 1)
	if _, _, err := h.tryConnect("hub.nk", "_INBOX.mailboxd.owner"); err == nil {
		t.Error("a host that the certificate doesn't name is trusted")
	}
}

func TestMistakesOfAHubAreSaid(t *testing.T) {
	h := makeHub(t, "--enroll", "gpu-1")
	h.run("has a hub already", "init")
	h.run("an argument is missing; usage: mailboxd-hub enroll NAME; see mailboxd-hub enroll --help", "enroll")
	h.run("too many arguments; usage: mailboxd-hub remove NAME", "remove", "a", "b")
	h.run("unknown command \"list\" for \"mailboxd-hub\"; see mailboxd-hub --help", "list")
	h.run("see mailboxd-hub serve --help", "serve", "now")
	h.run("runner gpu-1 is enrolled already; choose another name, or run: mailboxd-hub remove gpu-1", "enroll", "gpu-1")
	for _, bad := range []string{"", "GPU", "a.b", "a>", "*", "../x", "-x", "owner", strings.Repeat("a", 33), "a b"} {
		h.run("name it by 1 to 32 of a-z 0-9 _ -", "enroll", "--", bad)
	}
	h.run("runner gpu-2 is not enrolled", "remove", "gpu-2")
	h.run("the hub has no certificate", "serve", "--listen", "0.0.0.0:0")

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	h.run("another program has this port", "serve", "--listen", taken.Addr().String())

	for _, c := range []struct {
		file string
		mode os.FileMode
		want string
	}{
		{"hub.nk", 0o644, "other users may read the file (mode 0644); run: chmod 600"},
		{".", 0o777, "other users may write to it (mode 0777); run: chmod go-w"},
	} {
		path := filepath.Join(h.dir, c.file)
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		h.run(c.want, "serve", "--listen", "127.0.0.1:0")
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	none := &testHub{t: t, dir: t.TempDir()}
	none.run("name it by 1 to 32", "init", "--enroll", "gpu-1", "--enroll", "GPU")
	none.run("has no hub; make one with mailboxd-hub init", "serve")
	none.run("want an address and a port", "init", "--listen", "4222")
	tls := makeHub(t, "--listen", "0.0.0.0:4222")
	if err := os.Chmod(filepath.Join(tls.dir, "tls/key.pem"), 0o640); err != nil {
		t.Fatal(err)
	}
	tls.run("tls/key.pem: other users may read the file (mode 0640)", "serve", "--listen", "127.0.0.1:0")
}

func TestWhyAHubIsNotReachedIsSaidWithTheNextStep(t *testing.T) {
	plain, other := makeHub(t, "--enroll", "gpu-1"), makeHub(t, "--enroll", "gpu-1")
	sealed := makeHub(t, "--tls", "--host", "localhost", "--enroll", "gpu-1")
	plain.serve("127.0.0.1:0")
	sealed.serve("127.0.0.1:0")
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(plain.url, "nats://"))
	for _, c := range []struct {
		hub, file, url, want string
	}{
		{plain.dir, "credentials/gpu-1.nk", "nats://127.0.0.1:1", "start it with mailboxd-hub serve, or correct the address"},
		{plain.dir, "credentials/gpu-1.nk", "tls://127.0.0.1:" + port, "it has no certificate; write nats://"},
		{sealed.dir, "credentials/gpu-1.nk", strings.Replace(sealed.url, "localhost", "127.0.0.1", 1), "use a name that mailboxd-hub init --host got"},
		{plain.dir, "credentials/gpu-1.nk", sealed.url, "copy the credentials of this hub"},
		{other.dir, "credentials/gpu-1.nk", plain.url, "make a new key with: mailboxd-hub enroll gpu-1"},
		{other.dir, "hub.nk", plain.url, "copy hub.nk of this hub"},
	} {
		credentials, err := carrier.ReadCredentials(filepath.Join(c.hub, c.file))
		if err != nil {
			t.Fatal(err)
		}
		connect := carrier.Options{URL: c.url, Credentials: credentials}
		if _, err = carrier.DialRunner(carrier.RunnerOptions{Options: connect}); c.file == "hub.nk" {
			_, err = carrier.DialOwner(t.Context(), carrier.OwnerOptions{Options: connect})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: %v; want %q", c.url, c.file, err, c.want)
		}
	}
}

func TestAFullDiskIsSaid(t *testing.T) {
	h := &testHub{t: t, dir: t.TempDir()}
	if err := syscall.Mount("tmpfs", h.dir, "tmpfs", 0, "size=256k,mode=0700"); err != nil {
		t.Skip("a file system in memory can't be mounted, which needs root, so no disk can be filled: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(h.dir, 0); err != nil {
			t.Error(err)
		}
	})
	h.run("", "init")
	fill := filepath.Join(h.dir, "fill")
	if err := os.WriteFile(fill, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
	h.run("the disk of "+filepath.Join(h.dir, "jetstream")+" is full; free some space", "serve", "--listen", "127.0.0.1:0")
	h.run("no space left on device", "enroll", "a")
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	h.run("", "enroll", "a") // what had no space left nothing behind
}

func TestMailboxdHasNoServer(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "../mailboxd").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if strings.Contains(string(out), "nats-server") {
		t.Error("mailboxd imports nats-server; only mailboxd-hub may")
	}
}
