package runnerssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"mailboxd/internal/running/carrier"
	"mailboxd/internal/testtools/sshd"
)

// The program of the hub is built once.
var hubProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hub-program-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "mailboxd-hub")
	out, err := exec.Command("go", "build", "-o", program, "mailboxd/cmd/mailboxd-hub").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if program, err := hubProgram(); err == nil {
		os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

// A machine is the other machine of a test, with a program called mailboxd.
type machine struct {
	t       *testing.T
	dir     string // of its programs, and of what they write
	server  *sshd.Server
	changed chan struct{}
}

// newMachine starts a machine.
func newMachine(t *testing.T, more ...string) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir(), changed: make(chan struct{}, 100)}
	server, err := sshd.Start(t.TempDir(), []string{"PATH=" + m.dir + ":/usr/bin:/bin"}, more...)
	if errors.Is(err, sshd.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	m.server = server
	m.install(`echo "$@" >args.new; sed '/^END$/ q' >key.new; mv args.new args; mv key.new key; ` +
		`echo $$ >pid; cat >/dev/null; echo ended >ended`)
	return m
}

// install makes the program mailboxd of the machine.
func (m *machine) install(script string) {
	m.t.Helper()
	text := fmt.Sprintf("#!/bin/sh\ncd %s\n%s\n", m.dir, script)
	if err := os.WriteFile(filepath.Join(m.dir, "mailboxd"), []byte(text), 0o700); err != nil {
		m.t.Fatal(err)
	}
}

// link keeps a runner on the machine until the test ends or stop is called.
func (m *machine) link(name string, change func(*Options)) (l *Links, stop func()) {
	m.t.Helper()
	program, err := hubProgram()
	if err != nil {
		m.t.Fatal(err)
	}
	o := Options{Runners: []Runner{{Name: name, Destination: "machine"}}, Dir: filepath.Join(m.t.TempDir(), "hub"), Log: zerolog.Nop(),
		Changed: func() { m.changed <- struct{}{} }, hub: program, ssh: m.server.Program,
		pause: [2]time.Duration{10 * time.Millisecond, 100 * time.Millisecond}}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(m.t.Context())
	l, err = Start(ctx, o)
	if err != nil {
		m.t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := l.Serve(ctx); err != nil {
			m.t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); serving.Wait() })
	m.t.Cleanup(stop)
	return l, stop
}

// await waits for a file of the machine, and returns its text.
func (m *machine) await(name string) string {
	m.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(m.dir, name)); err == nil && len(text) > 0 {
			return string(text)
		}
	}
	m.t.Fatalf("the machine never wrote %s", name)
	return ""
}

// forget removes a file of the machine.
func (m *machine) forget(names ...string) {
	for _, name := range names {
		if err := os.Remove(filepath.Join(m.dir, name)); err != nil {
			m.t.Fatal(err)
		}
	}
}

var connects = regexp.MustCompile(`^runner --connect (tls://127\.0\.0\.1:\d+) --credentials -\n$`)

// reach logs in at the hub from the machine, as its runner would.
func (m *machine) reach() (url string, err error) {
	m.t.Helper()
	found := connects.FindStringSubmatch(m.await("args"))
	if found == nil {
		m.t.Fatalf("the machine runs mailboxd %s", m.await("args"))
	}
	credentials, err := carrier.ParseCredentials([]byte(strings.TrimSuffix(m.await("key"), End)))
	if err != nil {
		m.t.Fatal(err)
	}
	options, err := credentials.Options()
	if err != nil {
		m.t.Fatal(err)
	}
	conn, err := nats.Connect(found[1], options...)
	if err == nil {
		conn.Close()
	}
	return found[1], err
}

func TestARunnerOverSSHReachesTheHub(t *testing.T) {
	m := newMachine(t)
	l, stop := m.link("gpu-1", nil)
	forwarded, err := m.reach()
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Failures()) > 0 {
		t.Errorf("failures %v; want none", l.Failures())
	}
	// Another user of the machine has neither the key of the runner nor that of the hub. The error
	// depends on who closes the connection first.
	if _, err := nats.Connect(forwarded, nats.RootCAs(filepath.Join(l.opts.Dir, "tls/cert.pem"))); err == nil {
		t.Error("a program without a key logs in; want it refused")
	}
	if !strings.HasPrefix(l.URL(), "tls://127.0.0.1:") {
		t.Errorf("the hub is at %s; want a certificate, so that no other program takes its place", l.URL())
	}
	// A connection that breaks is made again, and so is a hub.
	pid := strings.TrimSpace(m.await("pid"))
	m.forget("args", "key", "pid")
	if out, err := exec.Command("kill", pid).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := m.reach(); err != nil {
		t.Errorf("after the runner ended: %v", err)
	}
	if err := l.hub.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err = m.reach(); err == nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		t.Errorf("after the hub was killed: %v", err)
	}
	stop()
	m.await("ended") // the standard input of the runner
}

func TestFailuresOfSSHAreSaidWithTheNextStep(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(*testing.T, *machine)
		more   string
		reason string
		next   string
	}{
		"wrong key":    {func(t *testing.T, m *machine) { check(t, m.server.UseKey("other")) }, "", "wrong key", "authorized_keys"},
		"new host key": {func(t *testing.T, m *machine) { check(t, m.server.Trust("other")) }, "", "wrong host key", "ssh-keygen -R"},
		"no host key":  {func(t *testing.T, m *machine) { check(t, m.server.Trust("")) }, "", "wrong host key", "ssh machine"},
		"missing program": {
			func(t *testing.T, m *machine) { m.forget("mailboxd") }, "", "mailboxd is not installed there", "install it: machine",
		},
		"older program": {func(t *testing.T, m *machine) {
			m.install(`echo 'mailboxd: unknown command "runner" for "mailboxd"' >&2; exit 2`)
		}, "",
			"mailboxd there is older than runners", "install there the version"},
		"refused by the runner": {func(t *testing.T, m *machine) {
			m.install(`echo 'mailboxd: runner.yaml: slots: must be more' >&2; exit 1`)
		}, "",
			"runner.yaml: slots: must be more", "correct that on machine"},
		"ended after lines of its log": {func(t *testing.T, m *machine) {
			m.install(`echo '{"level":"info","message":"runner started"}' >&2; exit 1`)
		}, "",
			"mailboxd runner there: exit status 1", "correct that on machine"},
		"no forwarding": {func(*testing.T, *machine) {}, "AllowTcpForwarding no", "doesn't forward", "AllowTcpForwarding"},
		"no sshd":       {func(t *testing.T, m *machine) { check(t, m.server.Close()) }, "", "no sshd answers", "try: ssh machine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, c.more)
			c.spoil(t, m)
			l, _ := m.link("gpu-1", nil)
			select {
			case <-m.changed:
			case <-time.After(20 * time.Second):
			}
			if f := l.Failures()["gpu-1"]; !strings.Contains(f.Reason, c.reason) || !strings.Contains(f.Next, c.next) {
				t.Errorf("the failure is %+v; want %q and %q", f, c.reason, c.next)
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Forwarded ports of a shared connection stay after the ssh that asked for them, and so does the connection.
func TestNoConnectionIsSharedWithThoseOfTheUser(t *testing.T) {
	m := newMachine(t)
	config, err := os.OpenFile(filepath.Join(m.server.Dir, "ssh_config"), os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	shared := filepath.Join(m.server.Dir, "shared")
	_, err = fmt.Fprintf(config, " ControlMaster auto\n ControlPath %s\n ControlPersist yes\n", shared)
	check(t, errors.Join(err, config.Close()))
	m.link("gpu-1", nil)
	if _, err := m.reach(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(shared); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket of a shared connection: %v; want none", err)
		if out, err := exec.Command(m.server.Program, "-O", "exit", "machine").CombinedOutput(); err != nil {
			t.Errorf("end the connection: %v: %s", err, out)
		}
	}
}

func TestATakenPortOfTheMachineIsAvoided(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	m := newMachine(t)
	first := true
	m.link("gpu-1", func(o *Options) {
		o.port = func() int {
			if first {
				first = false
				return taken.Addr().(*net.TCPAddr).Port
			}
			return randomPort()
		}
	})
	if _, err := m.reach(); err != nil {
		t.Error(err)
	}
}

func TestARunnerThatIsNoLongerConfiguredLosesItsKey(t *testing.T) {
	m := newMachine(t)
	l, stop := m.link("gpu-1", nil)
	stop()
	dir := l.opts.Dir
	m.link("gpu-2", func(o *Options) { o.Dir = dir })
	if _, err := os.Stat(filepath.Join(dir, "runners/gpu-1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the key of gpu-1: %v; want it removed", err)
	}
}

func TestAConfiguredRunnerWhoseCredentialsAreGoneGetsOthers(t *testing.T) {
	program, err := hubProgram()
	check(t, err)
	l := &Links{opts: Options{Runners: []Runner{{Name: "gpu-1"}}, Dir: filepath.Join(t.TempDir(), "hub")}, program: program}
	check(t, l.makeHub(t.Context()))
	check(t, os.Remove(l.credentialsOf("gpu-1")))
	check(t, l.makeHub(t.Context()))
	if _, err := carrier.ReadCredentials(l.credentialsOf("gpu-1")); err != nil {
		t.Error(err)
	}
}

func TestAMissingHubIsSaid(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Start(t.Context(), Options{Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "go install ./cmd/mailboxd-hub") {
		t.Errorf("got %v; want what to install", err)
	}
}

func TestDestinationsHaveNothingForAShell(t *testing.T) {
	for _, good := range []string{"gpu-1", "me@gpu-1.example.com", "10.0.0.1", "fe80::1"} {
		if err := CheckDestination(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "-oProxyCommand=x", "a b", "a;b", "$(a)", "a\nb", "@a", "ssh://a", strings.Repeat("a", 300)} {
		if CheckDestination(bad) == nil {
			t.Errorf("%q is let through", bad)
		}
	}
}
