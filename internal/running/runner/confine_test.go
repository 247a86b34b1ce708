package runner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/host"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/breakout"
	"mailboxd/internal/sandboxing/confine"
	"mailboxd/internal/sandboxing/sandbox"
)

func init() {
	roles["shows its status"] = func() {
		text, err := os.ReadFile("/proc/self/status")
		if err != nil {
			panic(err)
		}
		os.Stdout.Write(text)
	}
	roles["uses what it may"] = useWhatItMay
	roles["reads its arguments"] = func() {
		for _, path := range os.Args[1:] {
			if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
				os.Stdout.WriteString(path + " ")
			}
		}
	}
}

// useWhatItMay fails unless the usual programs would work.
func useWhatItMay() {
	work := os.Getenv("TMPDIR")
	if _, err := os.ReadDir("/usr"); err != nil {
		panic(err)
	}
	for _, path := range []string{filepath.Join(work, "new"), "made", "/dev/null", "/dev/stdout"} {
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			panic(err)
		}
	}
	if err := os.Rename("made", "moved"); err != nil {
		panic(err)
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	if _, err := syscall.Write(pair[0], []byte("x")); err != nil {
		panic(err)
	}
	if _, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0); err == nil {
		panic("a pair of datagram sockets could send to any name")
	}
}

// confined returns the Spec with the weaker sandbox.
func confined(t *testing.T, s runner.Spec, settings sandbox.Settings, change func(*sandbox.Run)) runner.Spec {
	t.Helper()
	if _, err := confine.Version(); err != nil {
		t.Skip(err)
	}
	work := filepath.Join(s.Dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	r := sandbox.Run{Dir: s.Dir, Work: work, Root: os.Getuid() == 0, Read: []sandbox.Path{{Name: s.Argv[0], Real: s.Argv[0]}}}
	r.System, r.Masked = host.SystemPaths()
	if change != nil {
		change(&r)
	}
	s.Sandbox = runner.Sandbox{Program: runner.WeakerProgram, Options: settings.WeakerOptions(r)}
	return s
}

// holesOf are the attempts that succeed in the weaker sandbox, as docs/sandbox.md lists them.
func holesOf(t *testing.T) []string {
	abi, err := confine.Version()
	if err != nil {
		t.Skip(err)
	}
	return breakout.Holes(abi >= sandbox.LandlockSignals)
}

func TestTheWeakerSandboxHasExactlyTheDocumentedHoles(t *testing.T) {
	asBothUsers(t, func(t *testing.T) {
		for _, profile := range []sandbox.Profile{sandbox.ReadOnly, sandbox.Workspace, sandbox.Offline} {
			s := playing(t, "breaks out")
			all := targets(t, s, everywhere()...)
			s = confined(t, s, sandbox.Settings{Profile: profile}, func(r *sandbox.Run) {
				project := t.TempDir()
				r.Cwd = sandbox.Path{Name: project, Real: project}
			})
			for _, f := range findings(t, s, all) {
				if hole := slices.Contains(holesOf(t), f.Attempt); f.Broke != hole {
					t.Errorf("%s: an agent tried to %s: broke through %v, want %v: %s", profile, f.Attempt, f.Broke, hole, f.Why)
				}
			}
		}
	})
}

func TestTheWeakerSandboxIsNotTheOther(t *testing.T) {
	s := confined(t, playing(t, "exits 75"), sandbox.Settings{Profile: sandbox.Workspace}, nil)
	k := keepers(t, t.TempDir(), "a")
	if exit := keptRun(t, k, s); exit.Code != 75 || exit.Cause != "" || exit.Sandboxed || !exit.Confined {
		t.Errorf("Run(exits 75) = %+v; want 75, confined and not in a sandbox", exit)
	}
	s = confined(t, playing(t, "suicide"), sandbox.Settings{Profile: sandbox.Workspace}, nil)
	if exit := keptRun(t, k, s); !strings.Contains(exit.Signal, "SIGKILL") || !exit.Confined {
		t.Errorf("Run(suicide) = %+v; want SIGKILL", exit)
	}
	s = confined(t, playing(t, "shows its descriptors"), sandbox.Settings{Profile: sandbox.Workspace}, nil)
	if keptRun(t, k, s); read(t, s, "stdout") != "0 1 2 " {
		t.Errorf("the agent has the descriptors %s; want 0 1 2", read(t, s, "stdout"))
	}
	s = playing(t, "complains") // the keeper itself is not restricted
	if exit := keptRun(t, k, s); exit.Confined || exit.Cause != "" {
		t.Errorf("a run without a sandbox ended with %+v", exit)
	}
}

func TestTheWeakerSandboxAllowsWhatProgramsNeed(t *testing.T) {
	asBothUsers(t, func(t *testing.T) {
		project := t.TempDir()
		s := confined(t, playing(t, "uses what it may"), sandbox.Settings{Profile: sandbox.Workspace}, func(r *sandbox.Run) {
			r.Cwd = sandbox.Path{Name: project, Real: project}
		})
		if exit := run(t, s); exit.Code != 0 || !exit.Confined {
			t.Errorf("Run = %+v: %s", exit, read(t, s, "stderr"))
		}
		if _, err := os.Stat(filepath.Join(project, "moved")); err != nil {
			t.Error(err)
		}
	})
}

func TestTheWeakerSandboxTakesAllCapabilities(t *testing.T) {
	s := confined(t, playing(t, "shows its status"), sandbox.Settings{Profile: sandbox.Workspace}, nil)
	run(t, s)
	status := read(t, s, "stdout")
	for _, line := range []string{"CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(status, line) {
			t.Errorf("the agent lacks %q: %s", line, status)
		}
	}
}

func TestRootInTheWeakerSandboxCannotReadThePasswords(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may read them")
	}
	for path, want := range map[string]int{"/etc/shadow": 1, "/etc/passwd": 0} {
		s := playing(t, "complains")
		s.Argv = []string{"/usr/bin/cat", path}
		s = confined(t, s, sandbox.Settings{Profile: sandbox.Workspace}, nil)
		if exit := run(t, s); exit.Code != want || !exit.Confined {
			t.Errorf("cat %s ended with %+v; want %d", path, exit, want)
		}
	}
}

func TestAWeakerSandboxThatCannotBeMadeRunsNothing(t *testing.T) {
	bad := map[string]func(*runner.Spec){
		"an unknown option":   func(s *runner.Spec) { s.Sandbox.Options = append(s.Sandbox.Options, "--no-such-option", "x") },
		"no directory":        func(s *runner.Spec) { s.Sandbox.Options = append(s.Sandbox.Options, sandbox.ChdirOption, "/no/such") },
		"a missing command":   func(s *runner.Spec) { s.Argv = []string{"/no/such/program"} },
		"a command elsewhere": func(s *runner.Spec) { s.Argv = []string{"/proc/1/root/bin/true"} },
	}
	k := keepers(t, t.TempDir(), "a")
	for name, spoil := range bad {
		t.Run(name, func(t *testing.T) {
			s := confined(t, playing(t, "complains"), sandbox.Settings{Profile: sandbox.Workspace}, nil)
			spoil(&s)
			exit := keptRun(t, k, s)
			if exit.Cause != task.CauseSandbox || exit.Reason == "" || exit.Sandboxed || exit.Confined {
				t.Errorf("Run = %+v; want the cause sandbox with a reason", exit)
			}
		})
	}
}

func TestAnAgentOfRootReadsNoSecretOfTheSystem(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("for others, the permissions hold")
	}
	secrets := slices.DeleteFunc(readable(t, 0), func(path string) bool { return path == "" })
	others := readable(t, 65534)
	secrets = slices.DeleteFunc(secrets, func(path string) bool { return slices.Contains(others, path) })
	for name, box := range map[string]func(*testing.T, runner.Spec) runner.Spec{
		"bubblewrap": func(t *testing.T, s runner.Spec) runner.Spec { return boxed(t, s, sandbox.Settings{}, nil) },
		"weaker": func(t *testing.T, s runner.Spec) runner.Spec {
			return confined(t, s, sandbox.Settings{Profile: sandbox.Workspace}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := playing(t, "reads its arguments")
			s.Argv = append(s.Argv, secrets...)
			s = box(t, s)
			if exit := run(t, s); exit.Code != 0 || read(t, s, "stdout") != "" {
				t.Errorf("of %q, the agent could read %s: %+v: %s", secrets, read(t, s, "stdout"), exit, read(t, s, "stderr"))
			}
		})
	}
}

// readable lists the files of /etc that a user can read, and that have content.
func readable(t *testing.T, user uint32) []string {
	t.Helper()
	cmd := exec.Command("find", "/etc", "-type", "f", "-size", "+0", "-readable")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out, err := cmd.Output()
	if len(out) == 0 { // it fails where it may not look
		t.Skipf("find files of /etc: %v", err)
	}
	return strings.Split(string(out), "\n")
}
