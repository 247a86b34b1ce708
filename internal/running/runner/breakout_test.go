package runner_test

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/running/host"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/breakout"
	"mailboxd/internal/sandboxing/sandbox"
)

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
	"read a secret through an inherited descriptor",
	"trace a process", "write /proc/PID/mem", "reach the process that reports the exit code",
}

// requireNesting skips a test where the kernel allows no sandbox in a sandbox.
func requireNesting(t *testing.T, b host.Bubblewrap) {
	t.Helper()
	one := []string{b.Path, "--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev"}
	if out, err := exec.Command(one[0], slices.Concat(one[1:], []string{"--proc", "/proc", "--"}, one, []string{"--", "true"})...).CombinedOutput(); err != nil {
		t.Skipf("no sandbox can be made in a sandbox here: %v: %s", err, out)
	}
}

func TestAnAgentCanMakeASandboxOfItsOwn(t *testing.T) {
	asBothUsers(t, func(t *testing.T) {
		b := requireBubblewrap(t)
		requireNesting(t, b)
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
		for _, test := range []struct {
			profile sandbox.Profile
			byName  bool // as for a bubblewrap that takes no descriptors
		}{{sandbox.ReadOnly, false}, {sandbox.Workspace, false}, {sandbox.Offline, false}, {sandbox.Workspace, true}} {
			s := playing(t, "breaks out")
			all := targets(t, s, everywhere()...)
			s = boxed(t, s, sandbox.Settings{Profile: test.profile}, func(r *sandbox.Run) {
				r.Home = os.Getenv("HOME")
				project := t.TempDir()
				r.Cwd = sandbox.Path{Name: project, Real: project}
			})
			s.Sandbox.ByName = s.Sandbox.ByName || test.byName
			for _, f := range findings(t, s, all) {
				if f.Broke {
					t.Errorf("%+v: an agent could %s: %s", test, f.Attempt, f.Why)
				}
			}
		}
	})
}

func TestWithoutASandboxEveryAttemptSucceeds(t *testing.T) {
	asBothUsers(t, func(t *testing.T) {
		for _, dir := range everywhere() { // one success in a dir is enough for an attempt
			s := playing(t, "breaks out")
			found := findings(t, s, targets(t, s, dir))
			closed := func(f breakout.Finding) bool { return f.Attempt == "write /proc/PID/mem" && !f.Broke } // by Yama
			for _, f := range found {
				if f.Attempt == "find a secret in memory" && slices.ContainsFunc(found, closed) {
					continue
				}
				if !f.Broke && !slices.Contains(notOpen, f.Attempt) && !impossible(f) {
					t.Errorf("%s: without a sandbox, an agent could not %s: %s", dir, f.Attempt, f.Why)
				}
			}
		}
	})
}

// impossible reports whether this machine has nothing for an attempt, also without a sandbox.
func impossible(f breakout.Finding) bool {
	switch f.Attempt {
	case "make a read-only mount writable":
		return !canUnshare()
	case "open a setting of the kernel for writing", "open a setting of the kernel through an own /proc", "give a file capabilities":
		return os.Getuid() != 0 // other users have no right to it anyway
	case "hard-link a secret": // to another file system, such as /tmp in memory
		return strings.HasSuffix(f.Why, unix.EXDEV.Error())
	case "open the shared memory of the host":
		_, err := os.Stat("/dev/shm")
		return err != nil
	}
	return false
}

// canUnshare reports whether this user may make user and mount namespaces.
func canUnshare() bool {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
	}
	return cmd.Run() == nil
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
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	} else if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("it passed as root; as an ordinary user, it was skipped:\n%s", out)
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
