package agent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/runner"
)

// cast is what the test binary plays when it is called with "play" and a name.
var cast = map[string]func(args []string){
	// say prints a file and exits with a status.
	"say": func(args []string) {
		text, _ := os.ReadFile(args[0])
		os.Stdout.Write(text)
		status, _ := strconv.Atoi(args[1])
		os.Exit(status)
	},
	// replay prints what a program has printed once, and exits as it did, or
	// stays at -1.
	"replay": func(args []string) {
		for at, to := range map[string]*os.File{".out": os.Stdout, ".err": os.Stderr} {
			text, _ := os.ReadFile(args[0] + at)
			to.Write(text)
		}
		status, _ := strconv.Atoi(args[1])
		if status < 0 {
			time.Sleep(time.Hour)
		}
		os.Exit(status)
	},
	// print prints what two files have, to standard output and error, and stays.
	"print": func(args []string) {
		for i, to := range []*os.File{os.Stdout, os.Stderr} {
			text, _ := os.ReadFile(args[i])
			to.Write(text)
		}
		time.Sleep(time.Hour)
	},
	// again prints a first line, and then a second one again and again.
	"again": func(args []string) {
		fmt.Println(args[0])
		for {
			fmt.Println(args[1])
			time.Sleep(20 * time.Millisecond)
		}
	},
	// tell shows what it was given, as an answer.
	"tell": func(args []string) {
		stdin, _ := io.ReadAll(os.Stdin)
		cwd, _ := os.Getwd()
		json.NewEncoder(os.Stdout).Encode(given{"told", args, os.Environ(), string(stdin), cwd})
	},
	// write writes the same file as its result, and something else to stdout.
	"write": func(args []string) {
		text, _ := os.ReadFile(args[0])
		os.WriteFile(os.Getenv("MAILBOX_RESULT_FILE"), text, 0o600)
		fmt.Println("this is only my log")
	},
	"complain": func([]string) {
		fmt.Fprint(os.Stderr, "Traceback:\n\x1b[31mKeyError\x1b[0m: 'x'\a\n")
		os.Exit(3)
	},
	"suicide": func([]string) { syscall.Kill(os.Getpid(), syscall.SIGKILL); time.Sleep(time.Hour) },
	// spend answers half, says what it has spent so far, and goes on.
	"spend": func(args []string) {
		fmt.Println(`{"summary": "half of it"}`)
		os.WriteFile(os.Getenv("MAILBOX_PROGRESS_FILE"), []byte(args[0]), 0o600)
		time.Sleep(time.Hour)
	},
	"hand over": handOver,
	"report":    reporting,
	// converse answers in CAP with what it was told of the conversation.
	"converse": func(args []string) {
		stdin, _ := io.ReadAll(os.Stdin)
		json.NewEncoder(os.Stdout).Encode(map[string]string{"content": strings.Join(append(args, os.Getenv("MAILBOX_CONVERSATION_FILE"), string(stdin)), " ")})
	},
	"hang":     func([]string) { time.Sleep(time.Hour) },
	"stubborn": func([]string) { signal.Ignore(syscall.SIGTERM); time.Sleep(time.Hour) },
	"flood": func([]string) {
		block := []byte(strings.Repeat("x", 1<<20))
		for range 1 << 10 {
			os.Stdout.Write(block)
		}
	},
	// daemonise leaves a child that holds stdout and ignores SIGTERM.
	"daemonise": func([]string) {
		child := &os.ProcAttr{Env: os.Environ(), Files: []*os.File{nil, os.Stdout, os.Stderr}}
		reader, writer, _ := os.Pipe()
		child.Files = append(child.Files, writer)
		if _, err := os.StartProcess("/proc/self/exe", []string{"left-behind", "play", "left behind"}, child); err != nil {
			panic(err)
		}
		writer.Close()
		io.ReadAll(reader) // until the child ignores SIGTERM
		fmt.Println(`{"summary": "done"}`)
	},
	"left behind": func([]string) {
		signal.Ignore(syscall.SIGTERM)
		os.NewFile(3, "ready").Close()
		time.Sleep(time.Hour)
	},
}

// given is what tell tells.
type given struct {
	Summary string   `json:"summary"`
	Argv    []string `json:"argv"`
	Environ []string `json:"environ"`
	Stdin   string   `json:"stdin"`
	Cwd     string   `json:"cwd"`
}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "play" {
		cast[os.Args[2]](os.Args[3:])
		return
	}
	goleak.VerifyTestMain(m)
}

// playing returns the binding of an agent that is played by the test binary.
func playing(t testing.TB, role string, args ...string) agent.Binding {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return agent.Binding{
		ID:      "tester",
		Command: append([]string{self, "play", role}, args...),
		Env:     []string{"GORACE=atexit_sleep_ms=0"}, // or each one sleeps a second under -race
	}
}

// printing returns the binding of an agent that prints a text and exits.
func printing(t testing.TB, text string, status int) agent.Binding {
	t.Helper()
	return playing(t, "say", file(t, "text", text), strconv.Itoa(status))
}

func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func bound(t testing.TB, b agent.Binding, roots ...string) *agent.Agent {
	t.Helper()
	agents, err := agent.New([]agent.Binding{b}, agent.Options{Roots: roots, Version: "1.2.3", Questions: true})
	if err != nil {
		t.Fatal(err)
	}
	g, _ := agents.Lookup(b.ID)
	return g
}

// request is a complete request; more is put among its members.
func request(more string) string {
	return `{"schema_version": "1.0", "task_id": "t1", "requester_id": "planner", "target_agent": "tester",
 "target_role": "executor", "task_type": "check", "description": "Look whether it runs.",
 "input": {"payload": {"hours": 24}}` + more + `}`
}

func jobFor(t testing.TB, request string) task.Job {
	t.Helper()
	given, findings := envelope.DecodeTask([]byte(request), envelope.Strict)
	if findings.Refused() {
		t.Fatalf("the request of the test is refused: %v", findings)
	}
	return task.Job{
		Task: given, Revision: 1, Attempt: 1, Dir: t.TempDir(), RunID: "run-1", Terms: task.Terms{Tools: given.AllowedTools},
		Allowance: given.Budget, Meter: limited(given.Budget),
	}
}

// limited is a meter that allows as much as all of the budgets.
func limited(budgets ...envelope.Budget) func(envelope.Cost) error {
	return func(said envelope.Cost) error {
		for _, b := range budgets {
			if b.Tokens != nil && said.Tokens > *b.Tokens {
				return fmt.Errorf("the agent used %d tokens of %d", said.Tokens, *b.Tokens)
			}
			if b.USDCents != nil && said.USDCents > *b.USDCents {
				return fmt.Errorf("the agent used %d US cents of %d", said.USDCents, *b.USDCents)
			}
		}
		return nil
	}
}

// outcome runs a binding with a plain request.
func outcome(t testing.TB, b agent.Binding) task.Outcome {
	t.Helper()
	return bound(t, b).Run(t.Context(), jobFor(t, request("")), nil)
}

// expect checks how a run ended.
func expect(t *testing.T, what string, got task.Outcome, status envelope.Status, kind envelope.Kind) {
	t.Helper()
	if got.Result.Status != status || got.Result.Error.Kind != kind {
		t.Errorf("%s: status %q, error %+v; want status %q, error kind %q", what, got.Result.Status, got.Result.Error, status, kind)
	}
	if got.Result.Output.Summary == "" {
		t.Errorf("%s: the summary is empty", what)
	}
	if _, findings := envelope.DecodeResult(got.Result.Encode()); findings.Refused() {
		t.Errorf("%s: the result is not valid: %v", what, findings)
	}
}

// ended makes the directory of a run that printed stdout and ended so.
func ended(t testing.TB, j task.Job, stdout string, exit task.Exit) {
	t.Helper()
	record, err := json.Marshal(exit)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{runner.StdoutFile: stdout, runner.StderrFile: "", runner.ExitFile: string(record)} {
		if err := os.WriteFile(filepath.Join(j.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
