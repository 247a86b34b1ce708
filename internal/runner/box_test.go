package runner_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/breakout"
	"mailboxd/internal/confine"
	"mailboxd/internal/gate"
	"mailboxd/internal/host"
	"mailboxd/internal/runner"
	"mailboxd/internal/sandbox"
	"mailboxd/internal/task"
)

func init() {
	roles["breaks out"] = breakOut
	roles["exits 75"] = func() { os.Exit(75) }
	roles["shows its descriptors"] = showDescriptors
	roles["has grace"] = haveGrace
	roles["uses the gate"] = useGate
	if len(os.Args) > 1 && os.Args[1] == runner.GateName {
		if err := gate.Run(os.Args[2:]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == runner.EnterName {
		panic(gate.Enter(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == runner.ConfineName {
		os.Stderr.WriteString("mailboxd: " + confine.Become(os.Args[2:]).Error())
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == breakout.RemountName {
		if err := breakout.Remount(os.Args[2:]); err != nil {
			os.Stderr.WriteString(err.Error())
			syscall.Exit(1)
		}
		syscall.Exit(0)
	}
}

// breakOut tries to break out and prints the findings.
func breakOut() {
	var targets breakout.Targets
	if err := json.Unmarshal([]byte(os.Getenv("TARGETS")), &targets); err != nil {
		panic(err)
	}
	json.NewEncoder(os.Stdout).Encode(breakout.Run(targets))
}

// useGate tries to connect to some hosts through the gate, and then directly.
func useGate() {
	proxy := strings.TrimPrefix(os.Getenv("HTTPS_PROXY"), "http://")
	for host := range strings.SplitSeq(os.Getenv("TRY"), ",") {
		c, err := net.Dial("tcp", proxy)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", host, host)
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			panic(err)
		}
		fmt.Println(host, r.StatusCode)
		if c, err := net.DialTimeout("tcp", host, time.Second); err == nil {
			fmt.Println(host, "directly")
			c.Close()
		}
	}
	showDescriptors()
}

func showDescriptors() {
	for fd := range 1024 {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			os.Stdout.WriteString(string(rune('0'+fd)) + " ")
		}
	}
}

// haveGrace ends some time after SIGTERM.
func haveGrace() {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGTERM)
	ready()
	<-caught
	os.Stdout.WriteString("cleaned up")
}

// requireBubblewrap skips a test where no sandbox can be made.
func requireBubblewrap(t testing.TB) host.Bubblewrap {
	t.Helper()
	b, err := host.FindBubblewrap()
	if err != nil {
		t.Skip(err)
	}
	return b
}

// boxed returns the Spec with a sandbox.
func boxed(t testing.TB, s runner.Spec, settings sandbox.Settings, change func(*sandbox.Run)) runner.Spec {
	t.Helper()
	b := requireBubblewrap(t)
	work := filepath.Join(s.Dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	r := sandbox.Run{Dir: s.Dir, Work: work, Read: []sandbox.Path{{Name: s.Argv[0], Real: s.Argv[0]}}}
	r.System, r.Masked = host.SystemPaths()
	r.Root = os.Getuid() == 0
	if change != nil {
		change(&r)
	}
	if settings.Profile == "" {
		settings.Profile = sandbox.Workspace
	}
	s.Sandbox = runner.Sandbox{Program: b.Path, ByName: b.ByName, Options: settings.Options(r)}
	return s
}

func TestASandboxPassesWhatTheAgentDoes(t *testing.T) {
	s := boxed(t, playing(t, "exits 75"), sandbox.Settings{}, nil)
	if exit := run(t, s); exit.Code != 75 || exit.Cause != "" || !exit.Sandboxed {
		t.Errorf("Run(exits 75) = %+v; want 75 from inside of a sandbox", exit)
	}
	s = boxed(t, playing(t, "suicide"), sandbox.Settings{}, nil)
	if exit := run(t, s); exit.Code != 137 || !exit.Sandboxed {
		t.Errorf("Run(suicide) = %+v; want 137, as bubblewrap reports SIGKILL", exit)
	}
	s = boxed(t, playing(t, "echo"), sandbox.Settings{}, nil)
	s.Stdin = filepath.Join(s.Dir, "request.json")
	if err := os.WriteFile(s.Stdin, []byte("a request"), 0o600); err != nil {
		t.Fatal(err)
	}
	if run(t, s); read(t, s, "stdout") != "a request" {
		t.Errorf("the agent read %q; want the request", read(t, s, "stdout"))
	}
}

func TestASandboxThatCannotBeMadeRunsNothing(t *testing.T) {
	bad := map[string]func(*runner.Spec){
		"a missing path":     func(s *runner.Spec) { s.Sandbox.Options = append(s.Sandbox.Options, "--ro-bind", "/no/such", "/no") },
		"an unknown option":  func(s *runner.Spec) { s.Sandbox.Options = append(s.Sandbox.Options, "--no-such-option") },
		"a missing command":  func(s *runner.Spec) { s.Argv = []string{"/no/such/program"} },
		"a failing bwrap":    func(s *runner.Spec) { s.Sandbox.Program = "/bin/false" },
		"a silent old bwrap": func(s *runner.Spec) { s.Sandbox.Program = "/bin/true" },
	}
	k := keepers(t, t.TempDir(), "a")
	for name, spoil := range bad {
		t.Run(name, func(t *testing.T) {
			s := boxed(t, playing(t, "complains"), sandbox.Settings{}, nil)
			spoil(&s)
			began := time.Now()
			exit := keptRun(t, k, s)
			if exit.Cause != task.CauseSandbox || exit.Reason == "" || exit.Sandboxed {
				t.Errorf("Run = %+v; want the cause sandbox with a reason", exit)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("it took %v; want less than a second", took)
			}
		})
	}
	s := boxed(t, playing(t, "complains"), sandbox.Settings{}, nil)
	s.Sandbox.Program = "/no/such/bwrap"
	if _, err := k.Run(t.Context(), s, nil); err == nil {
		t.Error("Run without a bwrap = nil; want an error")
	}
}

func TestALinkThatAnAgentMadeIsNotFollowed(t *testing.T) {
	secret, project := t.TempDir(), filepath.Join(t.TempDir(), "project")
	if err := os.Symlink(secret, project); err != nil {
		t.Fatal(err)
	}
	s := boxed(t, playing(t, "complains"), sandbox.Settings{}, func(r *sandbox.Run) {
		r.Cwd = sandbox.Path{Name: project, Real: project} // it was a directory when the configuration was read
	})
	if _, err := runner.Run(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("Run = %v; want an error about the symbolic link", err)
	}
}

func TestASandboxedAgentInheritsOnlyItsOutput(t *testing.T) {
	extra, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer extra.Close()
	if _, err := unix.FcntlInt(extra.Fd(), unix.F_SETFD, 0); err != nil { // as a careless parent of the daemon leaves one
		t.Fatal(err)
	}
	k := keepers(t, t.TempDir(), "a")
	for name, start := range map[string]func(runner.Spec){
		"of a keeper":    func(s runner.Spec) { keptRun(t, k, s) },
		"of any process": func(s runner.Spec) { run(t, s) },
	} {
		s := boxed(t, playing(t, "shows its descriptors"), sandbox.Settings{}, nil)
		if start(s); read(t, s, "stdout") != "0 1 2 " {
			t.Errorf("the agent %s has the descriptors %s; want 0 1 2", name, read(t, s, "stdout"))
		}
	}
}

func TestASandboxReachesListedHostsThroughItsGate(t *testing.T) {
	asBothUsers(t, func(t *testing.T) {
		listed, other := serve(t, "tcp", "127.0.0.1:0"), serve(t, "tcp", "127.0.0.1:0")
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		s := boxed(t, playing(t, "uses the gate"), sandbox.Settings{}, func(r *sandbox.Run) {
			r.Read = append(r.Read, sandbox.Path{Name: sandbox.EnterPath, Real: self})
		})
		s.Env = append(s.Env, "TRY="+listed+","+other)
		s.Sandbox.Network = []string{listed}
		k := keepers(t, t.TempDir(), "a")
		exit := keptRun(t, k, s)
		want := listed + " 200\n" + other + " 403\n0 1 2 "
		if got := read(t, s, "stdout"); got != want || !exit.Sandboxed || exit.Survivors != nil {
			t.Errorf("the agent printed %q, and ended with %+v; want %q: %s", got, exit, want, read(t, s, "stderr"))
		}
		if got := read(t, s, runner.RefusedFile); !strings.Contains(got, other) || strings.Contains(got, listed) {
			t.Errorf("refused is %q; want %s", got, other)
		}
	})
}

func TestASandboxedAgentHasItsGrace(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	s := boxed(t, playing(t, "has grace"), sandbox.Settings{}, func(r *sandbox.Run) { r.Fixed = nil })
	s.Timeout, s.Env[1] = 200*time.Millisecond, "READY="+os.DevNull
	exit := keptRun(t, k, s)
	if exit.Cause != task.CauseTimeout || !exit.Sandboxed || exit.Survivors != nil {
		t.Errorf("Run = %+v; want a timeout in the sandbox without survivors", exit)
	}
	if read(t, s, "stdout") != "cleaned up" {
		t.Error("the agent was killed within its grace period")
	}
}

// everywhere lists directories below /tmp, elsewhere, and in the home directory.
func everywhere() []string {
	places := []string{"/tmp", "/var/tmp"}
	if home, err := os.UserHomeDir(); err == nil {
		places = append(places, home)
	}
	return places
}

// targets returns what an agent must not reach, and makes it: in some places, in /dev/shm and in
// the run directory.
func targets(t *testing.T, s runner.Spec, places ...string) breakout.Targets {
	t.Helper()
	stage, err := breakout.NewStage(places...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stage.Close(); err != nil {
			t.Error(err)
		}
	})
	all := stage.Targets
	record := filepath.Join(s.Dir, "exit.json.aside")
	writeFile(t, record)
	all.Writable, all.Dirs = append(all.Writable, record), append(all.Dirs, s.Dir)
	return all
}

func writeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve accepts connections until the test ends, and returns the address.
func serve(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	})
	t.Cleanup(func() { l.Close(); accepting.Wait() })
	return l.Addr().String()
}

// findings runs the program that tries to break out.
func findings(t *testing.T, s runner.Spec, all breakout.Targets) []breakout.Finding {
	t.Helper()
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	s.Env = append(s.Env, "TARGETS="+string(text))
	s.Stdin = filepath.Join(s.Dir, "request.json")
	writeFile(t, s.Stdin)
	k := keepers(t, t.TempDir(), "a")
	exit := keptRun(t, k, s)
	var found []breakout.Finding
	if err := json.Unmarshal([]byte(read(t, s, "stdout")), &found); err != nil {
		t.Fatalf("%+v: %v: %s", exit, err, read(t, s, "stderr"))
	}
	if got, _ := os.ReadFile(s.Stdin); string(got) != "secret" && s.Sandbox.Program != "" {
		t.Errorf("the request is %q; the agent wrote to it", got)
	}
	return found
}

// notOpen are attempts that can fail without a sandbox: an old kernel has none of them, a
// new one may forbid them, and the only inherited descriptors are those of the output.
var notOpen = []string{
	"open a vsock socket", "set up io_uring", "use the keyring of the user", "write to an inherited descriptor",
	"trace a process", "write /proc/PID/mem",
}

func TestAnAgentCanMakeASandboxOfItsOwn(t *testing.T) {
	asBothUsers(t, func(t *testing.T) {
		b := requireBubblewrap(t)
		s := playing(t, "complains")
		s.Argv = []string{b.Path, "--unshare-user", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev"}
		if os.Getuid() != 0 { // for root, bubblewrap covers parts of /proc, and the kernel allows no other one then
			s.Argv = append(s.Argv, "--proc", "/proc")
		}
		s.Argv = append(s.Argv, "true")
		s = boxed(t, s, sandbox.Settings{}, nil)
		if exit := run(t, s); exit.Code != 0 || !exit.Sandboxed {
			t.Errorf("an agent with a sandbox of its own ended with %+v: %s", exit, read(t, s, "stderr"))
		}
	})
}

func TestNobodyBreaksOutOfASandbox(t *testing.T) {
	asBothUsers(t, func(t *testing.T) {
		for _, profile := range []sandbox.Profile{sandbox.ReadOnly, sandbox.Workspace, sandbox.Offline} {
			s := playing(t, "breaks out")
			all := targets(t, s, everywhere()...)
			s = boxed(t, s, sandbox.Settings{Profile: profile}, func(r *sandbox.Run) {
				r.Home = os.Getenv("HOME")
				project := t.TempDir()
				r.Cwd = sandbox.Path{Name: project, Real: project}
			})
			for _, f := range findings(t, s, all) {
				if f.Broke {
					t.Errorf("%s: an agent could %s", profile, f.Attempt)
				}
			}
		}
	})
}

func TestWithoutASandboxEveryAttemptSucceeds(t *testing.T) {
	asBothUsers(t, func(t *testing.T) {
		for _, dir := range everywhere() { // one success in a dir is enough for an attempt
			s := playing(t, "breaks out")
			for _, f := range findings(t, s, targets(t, s, dir)) {
				if !f.Broke && !slices.Contains(notOpen, f.Attempt) {
					t.Errorf("%s: without a sandbox, an agent could not %s: %s", dir, f.Attempt, f.Why)
				}
			}
		}
	})
}

// userName is the variable with which the test binary runs as an ordinary user.
const userName = "RUNNER_TEST_AS_USER"

// asBothUsers runs a test as this user and, if that is root, again as an ordinary one.
func asBothUsers(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	test(t)
	if os.Getuid() != 0 || os.Getenv(userName) != "" {
		return
	}
	dir, err := os.MkdirTemp("/tmp", "runner-user-*") // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const nobody = 65534
	binary, home := filepath.Join(dir, "runner.test"), filepath.Join(dir, "home")
	copyFile(t, "/proc/self/exe", binary)
	for _, path := range []string{dir, home} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(binary, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = home, []string{"TMPDIR=" + dir, "HOME=" + home, "PATH=" + os.Getenv("PATH"), userName + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestARunOutlivesItsGate(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := boxed(t, playing(t, "says so, is told, exits 7"), sandbox.Settings{}, func(r *sandbox.Run) {
		r.Read = append(r.Read, sandbox.Path{Name: sandbox.EnterPath, Real: self})
	})
	host := fmt.Sprintf("gate-%d.example.com", time.Now().UnixNano())
	s.Sandbox.Network = []string{host}
	k := keepers(t, t.TempDir(), "a")
	var killing sync.WaitGroup
	killing.Go(func() {
		fifo := filepath.Join(s.Dir, "ready")
		wait(fifo) // the agent runs
		pid := processWith(host)
		if pid == 0 {
			t.Error("there is no gate")
		} else if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
		if f, err := os.OpenFile(fifo, os.O_WRONLY, 0); err == nil {
			f.Close()
		}
	})
	if exit := keptRun(t, k, s); exit.Code != 7 || !exit.Sandboxed || exit.Survivors != nil {
		t.Errorf("Run = %+v; want 7 after the end of the gate", exit)
	}
	killing.Wait()
	if pid := processWith(host); pid != 0 {
		t.Errorf("the gate %d is left", pid)
	}
}

// processWith returns the process whose last argument is a word; 0 for none.
func processWith(word string) int {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil && strings.HasSuffix(string(text), "\x00"+word+"\x00") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	return 0
}
