package agent_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/runner"
)

func init() {
	// work answers each line with what a file says, about the task it names.
	cast["work"] = func(args []string) {
		text, _ := os.ReadFile(args[0])
		lines := bufio.NewReader(os.Stdin)
		for line, err := lines.ReadBytes('\n'); err == nil; line, err = lines.ReadBytes('\n') {
			var task struct {
				TaskID string `json:"task_id"`
			}
			json.Unmarshal(line, &task)
			fmt.Printf("{\"task_id\":%q,%s}\n", task.TaskID, strings.ReplaceAll(string(text), "PID", strconv.Itoa(os.Getpid())))
		}
	}
	// quit exits with a status when it has read a line.
	cast["quit"] = func(args []string) {
		bufio.NewReader(os.Stdin).ReadBytes('\n')
		fmt.Fprintln(os.Stderr, "no more")
		status, _ := strconv.Atoi(args[0])
		os.Exit(status)
	}
}

// working returns the binding of an agent whose worker is played by the test
// binary.
func working(t testing.TB, role string, args ...string) agent.Binding {
	t.Helper()
	b := playing(t, role, args...)
	b.Worker, b.Command = &agent.Worker{Command: b.Command}, nil
	b.Backoff = time.Millisecond
	return b
}

// answering returns the binding of one whose answers have these members.
func answering(t testing.TB, members string) agent.Binding {
	t.Helper()
	return working(t, "work", file(t, "members", members))
}

const fine = `"status":"ok","output":{"summary":"PID","actions":[]}`

func registry(t testing.TB, bindings ...agent.Binding) *agent.Agents {
	t.Helper()
	agents, err := agent.New(bindings, agent.Options{WorkerDir: t.TempDir(), Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agents.Close(time.Second) })
	return agents
}

// lineJob is a job without a directory.
func lineJob(t testing.TB, more string) task.Job {
	t.Helper()
	j := jobFor(t, request(more))
	j.Dir = ""
	return j
}

func TestAWorkersAnswerBecomesACompleteResult(t *testing.T) {
	a := registry(t, answering(t, `"status":"completed","output":{"summary":"all is well","sla":99},"cost_used":{"tokens":7,"usd_cents":1}`))
	got := a.Run(t.Context(), lineJob(t, ""), nil)
	expect(t, "Run", got, envelope.OK, "")
	r := got.Result
	if r.TaskID != "t1" || r.AgentID != "tester" || string(r.Output.Extra) != `{"sla":99}` || r.Cost == nil || r.Cost.Tokens != 7 {
		t.Errorf("result = %+v; want what the worker said, under its id", r)
	}
	if got.Exit.PID == 0 || r.Time.Started.IsZero() || r.Time.Wall != got.Exit.Wall {
		t.Errorf("exit %+v, time %+v; want what we measured", got.Exit, r.Time)
	}
	if len(r.Artifacts) != 0 || r.Provenance.RecordingURI != "" || r.Provenance.RuntimeVersion != "mailboxd/1.2.3" {
		t.Errorf("artifacts %v, provenance %+v; want none of a run directory, for there is none", r.Artifacts, r.Provenance)
	}
	if a.HasDir("tester") || !a.HasDir("somebody else") {
		t.Error("HasDir: want false for a worker, true for anybody else")
	}
}

// Rows 37, 38 and 41, as they apply to workers.
func TestEachWayAWorkerFailsHasAKindOfItsOwn(t *testing.T) {
	idempotent := func(b agent.Binding) agent.Binding { b.Idempotent = true; return b }
	hurried := func(b agent.Binding) agent.Binding { b.Timeout = 10 * time.Millisecond; return b }
	missing := working(t, "")
	missing.Worker.Command = []string{"/nonexistent/worker"}
	for name, c := range map[string]struct {
		binding agent.Binding
		status  envelope.Status
		kind    envelope.Kind
		retry   bool
	}{
		"another agent's answer": {answering(t, `"agent_id":"impostor",`+fine), envelope.Failed, envelope.IdentityMismatch, false},
		"a wrong type":           {answering(t, `"status":5`), envelope.Failed, envelope.OutputInvalid, false},
		"no JSON after all":      {answering(t, `"status":"ok",,`), envelope.Failed, envelope.OutputInvalid, false},
		"its own error":          {answering(t, `"status":"error","output":{"summary":"no"},"error":{"kind":"quota"}`), envelope.Failed, "quota", false},
		"a death":                {working(t, "quit", "3"), envelope.Failed, envelope.AgentCrashed, false},
		"a quiet end":            {working(t, "quit", "0"), envelope.Failed, envelope.AgentCrashed, false},
		"an idempotent death":    {idempotent(working(t, "quit", "3")), envelope.Failed, envelope.AgentCrashed, true},
		"exit 75":                {working(t, "quit", "75"), envelope.Failed, envelope.AgentCrashed, true},
		"a timeout":              {hurried(working(t, "hang")), envelope.Failed, envelope.Timeout, false},
		"an idempotent timeout":  {idempotent(hurried(working(t, "hang"))), envelope.Failed, envelope.Timeout, false},
		"missing":                {missing, envelope.Rejected, envelope.SpawnFailed, true},
	} {
		got := registry(t, c.binding).Run(t.Context(), lineJob(t, ""), nil)
		expect(t, name, got, c.status, c.kind)
		if got.Retry != c.retry {
			t.Errorf("%s: retry = %v; want %v", name, got.Retry, c.retry)
		}
		if name == "a death" && got.Result.Error.Message != `the worker exited with status 3; its last words: "no more"` {
			t.Errorf("%s: message = %s; want its status and last words", name, got.Result.Error.Message)
		}
	}
}

func TestADeadlineEndsAWorkersTask(t *testing.T) {
	a := registry(t, working(t, "hang"))
	j := lineJob(t, "")
	j.Deadline = time.Now().Add(time.Second)
	expect(t, "a deadline", a.Run(t.Context(), j, nil), envelope.Failed, envelope.DeadlineExceeded)
	expect(t, "a deadline that is over", a.Run(t.Context(), j, nil), envelope.Rejected, envelope.DeadlineExceeded)
}

func TestWhatWeInterruptIsNoFailureOfTheirs(t *testing.T) {
	for _, idempotent := range []bool{false, true} {
		b := working(t, "hang")
		b.Idempotent, b.Timeout = idempotent, time.Hour
		a := registry(t, b)
		ctx, stop := context.WithCancelCause(t.Context())
		stopping := time.AfterFunc(20*time.Millisecond, func() { stop(runner.ErrDetach) })
		got := a.Run(ctx, lineJob(t, ""), nil)
		stopping.Stop()
		expect(t, "Run", got, got.Result.Status, envelope.RunLost)
		if got.Exit.Cause != task.CauseInterrupted || got.Detached {
			t.Errorf("exit = %+v, detached %v; want interrupted: a worker ends with us", got.Exit, got.Detached)
		}
		if got.Exit.PID != 0 && got.Retry != idempotent {
			t.Errorf("retry = %v; want %v", got.Retry, idempotent)
		}
		void := a.Run(ctx, lineJob(t, ""), nil)
		if !void.Retry || void.Exit.Cause != task.CauseInterrupted || void.Exit.PID != 0 {
			t.Errorf("Run with an ended context = %+v; want it void", void)
		}
		recovered := a.Recover(t.Context(), lineJob(t, ""))
		expect(t, "Recover", recovered, envelope.Failed, envelope.RunLost)
		if recovered.Retry != idempotent {
			t.Errorf("Recover: retry = %v; want %v", recovered.Retry, idempotent)
		}
	}
}

func TestARequestOfSeveralLinesIsOneForAWorker(t *testing.T) {
	got := registry(t, answering(t, fine)).Run(t.Context(), lineJob(t, `, "x_text": "a\nb", "x_number": 1e999`), nil)
	expect(t, "Run", got, envelope.OK, "")
}

// An AgentTaskRequest has a string there, and a worker may end at anything else.
func TestATaskIDThatIsANumberIsAStringForAWorker(t *testing.T) {
	j := lineJob(t, `, "x": "\ud800", "y": 1e999`)
	j.Task.ID, j.Task.Raw = "20260309", bytes.Replace(j.Task.Raw, []byte(`"t1"`), []byte("20260309"), 1)
	b := answering(t, fine)
	b.Timeout = time.Minute // it hangs when the worker finds no task_id
	expect(t, "Run", registry(t, b).Run(t.Context(), j, nil), envelope.OK, "")
}

func TestARequestOfAnotherDialectIsTranslatedForAWorker(t *testing.T) {
	b := answering(t, fine)
	b.Timeout = time.Minute // it hangs when the worker finds no task_id
	a := registry(t, b)
	const line = `{"clowl":"0.2","mid":"t1","ts":1709078400,"p":"REQ","from":"ann","to":"tester","cid":"c1","body":{"t":"work","d":{"n":1}}}`
	j := lineJob(t, "")
	j.Task, _ = dialect.DecodeTask(envelope.CLowl, []byte(line), envelope.Strict)
	expect(t, "Run", a.Run(t.Context(), j, nil), envelope.OK, "")

	j.Task.ID = "t2" // its answer could not be told from that of t1
	got := a.Run(t.Context(), j, nil)
	expect(t, "a translation about another task", got, envelope.Rejected, envelope.InternalError)
	if got.Exit.PID != 0 {
		t.Error("it was given to a worker; want it refused before that")
	}
	expect(t, "the next task", a.Run(t.Context(), lineJob(t, ""), nil), envelope.OK, "")
}

func TestAnUnchangedWorkerStaysWarm(t *testing.T) {
	b, dir := answering(t, fine), t.TempDir()
	pid := ""
	var before *agent.Agents
	for _, count := range []int{1, 1, 2} {
		b.Worker = &agent.Worker{Command: b.Worker.Command, Count: count}
		now, err := agent.New([]agent.Binding{b}, agent.Options{WorkerDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if before != nil {
			now.Keep(before)
			before.Close(time.Second)
		}
		got := now.Run(t.Context(), lineJob(t, ""), nil)
		expect(t, "Run", got, envelope.OK, "")
		if same := got.Result.Output.Summary == pid; same != (before != nil && count == 1) {
			t.Errorf("count %d: process %s after %s; want the same one while the binding is the same", count, got.Result.Output.Summary, pid)
		}
		if pid = got.Result.Output.Summary; count == 2 {
			void := before.Run(t.Context(), lineJob(t, ""), nil)
			if !void.Retry || void.Exit.Cause != task.CauseInterrupted {
				t.Errorf("Run of closed agents = %+v; want it void", void)
			}
		}
		before = now
	}
	before.Close(time.Second)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v is left; want nothing", left, err)
	}
}

func TestASweepEndsWhatKilledDaemonsLeft(t *testing.T) {
	dir := t.TempDir() + "/workers"
	if err := agent.SweepWorkers(dir); err != nil {
		t.Fatal(err)
	}
	its, err := os.MkdirTemp(dir, "worker-")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	left := exec.Command(self, "play", "stubborn")
	left.Env = []string{runner.DirVariable + "=" + its}
	left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	if err := agent.SweepWorkers(dir); err != nil {
		t.Error(err)
	}
	if err, ok := errors.AsType[*exec.ExitError](left.Wait()); !ok || err.ExitCode() != -1 {
		t.Errorf("what was left ended with %v; want a signal", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v is left; want nothing", entries, err)
	}
}

func TestABadWorkerIsRefused(t *testing.T) {
	for want, set := range map[string]func(*agent.Binding){
		"worker: an agent has exec or worker": func(b *agent.Binding) { b.Command = []string{"true"} },
		"worker.command: required":            func(b *agent.Binding) { b.Worker.Command = nil },
		"worker.command[0]: ":                 func(b *agent.Binding) { b.Worker.Command = []string{"./x"} },
		"worker.command[1]: ":                 func(b *agent.Binding) { b.Worker.Command = []string{"x", "\x00"} },
		"worker.count: ":                      func(b *agent.Binding) { b.Worker.Count = -1 },
		"worker.in_flight: ":                  func(b *agent.Binding) { b.Worker.InFlight = 1 << 20 },
		"idle_timeout: ":                      func(b *agent.Binding) { b.IdleTimeout = 1 },
		"backoff: ":                           func(b *agent.Binding) { b.Backoff = -1 },
	} {
		b := agent.Binding{ID: "x", Worker: &agent.Worker{Command: []string{"true"}}}
		set(&b)
		_, err := agent.New([]agent.Binding{b}, agent.Options{})
		if want = `agents[0] "x": ` + want; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("New = %v; want an error that begins %s", err, want)
		}
	}
}

// BenchmarkWorkerRoundTrip takes a task to a complete result through one
// worker with 16 tasks in flight.
func BenchmarkWorkerRoundTrip(b *testing.B) {
	binding := answering(b, fine)
	binding.Worker.InFlight = 16
	a := registry(b, binding)
	job := lineJob(b, "")
	compact, err := json.Marshal(json.RawMessage(job.Task.Raw))
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(8) // of two or more processors
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			j, id := job, fmt.Sprintf("t%d", next.Add(1))
			j.Task.ID = envelope.ID(id)
			j.Task.Raw = slices.Clone([]byte(strings.Replace(string(compact), `"t1"`, `"`+id+`"`, 1)))
			if got := a.Run(b.Context(), j, nil); got.Result.Status != envelope.OK {
				b.Errorf("result = %+v; want ok", got.Result)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}
