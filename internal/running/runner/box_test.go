package runner_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/host"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/breakout"
	"mailboxd/internal/sandboxing/confine"
	"mailboxd/internal/sandboxing/gate"
	"mailboxd/internal/sandboxing/sandbox"
)

func init() {
	roles["breaks out"] = breakOut
	roles["forges its exit code"] = forgeExitCode
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
	for name, attempt := range map[string]func([]string) error{
		breakout.RemountName: breakout.Remount, breakout.OwnProcName: breakout.OwnProc, breakout.CapabilitiesName: breakout.GiveCapabilities,
	} {
		if len(os.Args) > 1 && os.Args[1] == name {
			if err := attempt(os.Args[2:]); err != nil {
				os.Stderr.WriteString(err.Error())
				syscall.Exit(1)
			}
			syscall.Exit(0)
		}
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

// forgeExitCode reports success to bubblewrap as its first process does, and fails.
func forgeExitCode() {
	if first, err := unix.PidfdOpen(1, 0); err == nil {
		for fd := range 64 {
			own, err := unix.PidfdGetfd(first, fd, 0)
			if err != nil {
				continue
			}
			const success = 1 // an eventfd can't pass 0
			unix.Write(own, binary.NativeEndian.AppendUint64(nil, success))
		}
	}
	time.Sleep(time.Second) // bubblewrap ends before, if it believes that
	os.Exit(9)
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
	r.Kernel = host.KernelSettings()
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
	s = boxed(t, playing(t, "forges its exit code"), sandbox.Settings{}, nil)
	if exit := run(t, s); exit.Code != 9 || !exit.Sandboxed {
		t.Errorf("Run(forges its exit code) = %+v; want 9", exit)
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
			best := time.Hour
			for range 3 { // the first may start the keeper, and others use the machine, too
				s := boxed(t, playing(t, "complains"), sandbox.Settings{}, nil)
				spoil(&s)
				began := time.Now()
				exit := keptRun(t, k, s)
				best = min(best, time.Since(began))
				if exit.Cause != task.CauseSandbox || exit.Reason == "" || exit.Sandboxed {
					t.Errorf("Run = %+v; want the cause sandbox with a reason", exit)
				}
			}
			if best > time.Second {
				t.Errorf("it took %v; want less than a second", best)
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
		for _, byName := range []bool{false, true} {
			s := boxed(t, playing(t, "shows its descriptors"), sandbox.Settings{}, nil)
			s.Sandbox.ByName = s.Sandbox.ByName || byName
			if start(s); read(t, s, "stdout") != "0 1 2 " {
				t.Errorf("by name %v, the agent %s has the descriptors %s; want 0 1 2", byName, name, read(t, s, "stdout"))
			}
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
	s := boxed(t, playing(t, "has grace"), sandbox.Settings{}, nil)
	ctx, interrupt := context.WithCancel(t.Context())
	var interrupting sync.WaitGroup
	interrupting.Go(func() {
		awaitReady(t, s)
		interrupt()
	})
	exit, err := k.Run(ctx, s, nil)
	interrupting.Wait()
	if err != nil || exit.Cause != task.CauseInterrupted || !exit.Sandboxed || exit.Survivors != nil {
		t.Errorf("Run = %+v, %v; want it interrupted in the sandbox without survivors", exit, err)
	}
	if read(t, s, "stdout") != "cleaned up" {
		t.Error("the agent was killed within its grace period")
	}
}

// awaitReady blocks until the process of a Spec has called ready. It reports whether that was
// within a minute, since a process that fails to start never does.
func awaitReady(t *testing.T, s runner.Spec) bool {
	t.Helper()
	fd, err := unix.Open(filepath.Join(s.Dir, "ready"), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Error(err)
		return false
	}
	defer unix.Close(fd)
	end := time.Now().Add(time.Minute)
	for left := time.Minute; left > 0; left = time.Until(end) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd)}}, int(left.Milliseconds()))
		if n > 0 {
			return true // a writer has come and gone
		}
		if err != nil && err != unix.EINTR {
			t.Error(err)
			return false
		}
	}
	t.Error("the process is not ready")
	return false
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
		if !awaitReady(t, s) {
			return
		}
		pid := processWith(host)
		if pid == 0 {
			t.Error("there is no gate")
		} else if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
		fifo, err := os.OpenFile(filepath.Join(s.Dir, "ready"), os.O_RDWR, 0) // doesn't wait for a reader
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { fifo.Close() })
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
