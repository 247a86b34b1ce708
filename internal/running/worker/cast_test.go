package worker_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mailboxd/internal/running/worker"
)

// cast is what the test binary plays when it is called with "play" and a name.
var cast = map[string]func(args []string){
	"echo": func([]string) { eachLine(func(n int, line string) { reply(line) }) },
	"pid": func([]string) {
		eachLine(func(n int, line string) { fmt.Printf(`{"task_id":%q,"pid":%d}`+"\n", taskID(line), os.Getpid()) })
	},
	// stepwise says twice how far it is before it answers.
	"stepwise": func([]string) {
		eachLine(func(n int, line string) {
			for step := 1; step <= 2; step++ {
				fmt.Printf(`{"task_id":%q,"step":%d}`+"\n", taskID(line), step)
			}
			reply(line)
		})
	},
	// third dies when it has read its third line.
	"third": func([]string) {
		eachLine(func(n int, line string) {
			if n == 3 {
				fmt.Fprintln(os.Stderr, "I never could count")
				os.Exit(9)
			}
			reply(line)
		})
	},
	"junk": func([]string) {
		fmt.Println("worker v1.2 starting")
		eachLine(func(n int, line string) {
			fmt.Printf("\n[1,2]\n{\"task_id\":\"stranger\"}\n{\"task_id\": 5}\n\x00\xff\n{\"level\":\"info\"}\n{\"task_id\":\n")
			reply(line)
		})
	},
	// backwards waits for as many lines as it is told and answers the last first.
	"backwards": func(args []string) {
		var lines []string
		eachLine(func(n int, line string) {
			if lines = append(lines, line); len(lines) == len(args[0]) {
				slices.Reverse(lines)
				for _, l := range lines {
					reply(l)
				}
				lines = nil
			}
		})
	},
	// picky never answers what is called hang.
	"picky": func([]string) {
		eachLine(func(n int, line string) {
			if taskID(line) != "hang" {
				reply(line)
			}
		})
	},
	"stubborn": func([]string) { signal.Ignore(syscall.SIGTERM); eachLine(func(int, string) {}); select {} },
	"deaf":     func([]string) { time.Sleep(time.Hour) },
	"mute":     func([]string) { os.Stdout.Close(); eachLine(func(int, string) {}) },
	"half": func([]string) {
		eachLine(func(n int, line string) { fmt.Printf(`{"task_id":%q,"stat`, taskID(line)); os.Exit(0) })
	},
	"no newline": func([]string) {
		eachLine(func(n int, line string) { fmt.Printf(`{"task_id":%q}`, taskID(line)); os.Exit(0) })
	},
	"flood": func([]string) {
		eachLine(func(n int, line string) {
			fmt.Printf(`{"task_id":%q,"x":"`, taskID(line))
			block := strings.Repeat("x", 1<<20)
			for range 64 {
				io.WriteString(os.Stdout, block)
			}
			fmt.Println(`"}`)
		})
	},
	"noisy": func([]string) {
		for range 1 << 10 {
			io.WriteString(os.Stderr, strings.Repeat("z", 1<<10))
		}
		fmt.Fprintln(os.Stderr, "\nlast")
		eachLine(func(int, string) { syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} })
	},
	// parent answers with the process id of a child that outlives it if it can.
	"parent": func([]string) {
		child := exec.Command("/bin/sleep", "1000")
		child.Start()
		eachLine(func(n int, line string) { fmt.Printf(`{"task_id":%q,"pid":%d}`+"\n", taskID(line), child.Process.Pid) })
	},
	// daemon asks a worker and is killed.
	"daemon": func(args []string) {
		p := worker.NewPool(spec(args[0], "pid"), func(error) {})
		a, err := p.Ask(noContext, question("t1"))
		fmt.Println(a.PID, err)
		select {}
	},
}

func eachLine(do func(n int, line string)) {
	in := bufio.NewReader(os.Stdin)
	for n := 1; ; n++ {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		do(n, line)
	}
}

var idIn = regexp.MustCompile(`"task_id":"([^"]*)"`)

func taskID(line string) string { return idIn.FindStringSubmatch(line)[1] }

// reply answers with the question itself, which has its task_id.
func reply(line string) { fmt.Print(strings.TrimSuffix(line, "\n") + "\n") }

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "play" {
		cast[os.Args[2]](os.Args[3:])
		return
	}
	goleak.VerifyTestMain(m)
}

func spec(dir, role string, args ...string) worker.Spec {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return worker.Spec{
		Argv: append([]string{self, "play", role}, args...),
		Env:  []string{"GORACE=atexit_sleep_ms=0"}, // or each one sleeps a second under -race
		Dir:  dir, Mark: "WORKER_DIR",
		Count: 1, InFlight: 1, Backoff: time.Millisecond, Grace: 5 * time.Second,
	}
}

// notes keeps what a pool has to say.
type notes struct {
	mu   sync.Mutex // guards said
	said []string
}

func (n *notes) add(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, err.Error())
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.said, "\n")
}

// open makes a pool that the test closes.
func open(t testing.TB, s worker.Spec) (*worker.Pool, *notes) {
	t.Helper()
	n := &notes{}
	p := worker.NewPool(s, n.add)
	t.Cleanup(func() { p.Close(s.Grace) })
	return p, n
}
