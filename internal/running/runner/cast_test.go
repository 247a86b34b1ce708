package runner_test

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// role names, in the environment, what the test binary plays instead of
// testing.
const role = "RUNNER_TEST_ROLE"

var roles = map[string]func(){
	"exit3": func() { os.Exit(3) },

	"says nothing": func() {},
	"complains":    func() { fmt.Fprintln(os.Stderr, "no") },
	"answers":      func() { os.WriteFile(os.Getenv("ANSWER"), []byte("yes"), 0o600) },
	"echo":         func() { io.Copy(os.Stdout, os.Stdin) },
	"environ":      func() { fmt.Println(strings.Join(os.Environ(), "\n")) },
	"where":        func() { wd, _ := os.Getwd(); fmt.Println(wd) },
	"slack":        func() { fmt.Print(unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)) },
	"suicide":      func() { syscall.Kill(os.Getpid(), syscall.SIGKILL); forever() },
	"hang":         func() { forever() },
	"stubborn": func() {
		signal.Ignore(syscall.SIGTERM)
		ready()
		forever()
	},
	"flood": func() {
		block := []byte(strings.Repeat("x", 1<<20))
		for range 1 << 10 {
			os.Stdout.Write(block)
		}
	},
	"stubborn flood": func() {
		signal.Ignore(syscall.SIGTERM)
		os.Stdout.Write([]byte("over its budget"))
		forever()
	},
	"leaves a child":          func() { leave("hang, and say so") },
	"leaves a stubborn child": func() { leave("stubborn") },
	"hang, and say so":        func() { ready(); forever() },
	"writes over its record":  forging(overwriteRecord),
	"empties its record":      forging(func(dir string, _ []byte) { overwriteRecord(dir, nil) }),
	"replaces its record":     forging(replaceRecord),
	"forges its exit":         forging(forgeExit),
	"says so, is told, exits 7": func() {
		ready()
		wait(os.Getenv("READY"))
		os.Exit(7)
	},
}

func open(path string) *os.File {
	f, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	return f
}

func forever() { time.Sleep(time.Hour) }

// ready reports that the role is being played.
func ready() {
	if f, err := os.OpenFile(os.Getenv("READY"), os.O_WRONLY, 0); err == nil {
		f.Close()
	}
}

// leave exits when its child plays.
func leave(child string) {
	os.Setenv(role, child)
	attr := &os.ProcAttr{Env: os.Environ(), Files: []*os.File{nil, os.Stdout, os.Stderr}}
	if _, err := os.StartProcess("/proc/self/exe", []string{"left-behind"}, attr); err != nil {
		panic(err)
	}
	wait(os.Getenv("READY"))
}

// wait blocks until ready is called with the same file.
func wait(path string) {
	open(path).Close() // a FIFO: opening it waits for a writer
}

func TestMain(m *testing.M) {
	if play, ok := roles[os.Getenv(role)]; ok {
		play()
		return
	}
	if len(os.Args) == 4 && os.Args[1] == "keeper" {
		keepRuns()
		return
	}
	goleak.VerifyTestMain(m)
}

// playing returns a Spec whose process plays a role, in a directory of its own.
func playing(t testing.TB, name string) runner.Spec {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	fifo := filepath.Join(dir, "ready")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{role + "=" + name, "READY=" + fifo, "GORACE=atexit_sleep_ms=0"}
	return runner.Spec{Dir: dir, Argv: []string{self}, Env: env, Grace: time.Minute}
}

func run(t testing.TB, s runner.Spec) task.Exit {
	t.Helper()
	exit, err := runner.Run(t.Context(), s, nil)
	if err != nil {
		t.Fatalf("Run(%q) = %v", s.Argv, err)
	}
	return exit
}

func read(t *testing.T, s runner.Spec, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// parent returns the parent of a process.
func parent(t testing.TB, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	_, rest, _ := strings.Cut(string(text), ") ")
	if _, err := fmt.Sscanf(rest[2:], "%d", &number); err != nil {
		t.Fatal(err)
	}
	return number
}
