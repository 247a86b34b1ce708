package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/dispatch"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/slowtest"
	"mailboxd/mailbox"
	"mailboxd/watcher"
)

// A play is an agent function, played in Go.
type play func(ctx context.Context, j task.Job) task.Outcome

// An engine is a dispatcher with real parts in a directory of the test's own.
// What is set before start is in force from then on.
type engine struct {
	*dispatch.Dispatcher
	parts    store.Parts
	t        testing.TB
	dir      string
	plays    map[string]play
	inboxes  map[string]store.Inbox
	judge    func(t envelope.Task, now time.Time) task.Verdict
	retries  int
	givesUp  bool                                       // answers that cannot be read are not read again
	dirs     bool                                       // runs have directories
	looksUp  func()                                     // is called before somebody is told that; nil for nobody
	found    task.Outcome                               // what becomes of a run that is met at a start
	recovers func(context.Context) task.Outcome         // or this
	answer   func(j task.Job, said []byte) task.Outcome // of who fetches a task, instead of its words
	mode     envelope.Mode                              // of every control that the engine holds itself
	refs     store.RefRule
	opts     store.Options
	ttl      time.Duration                                  // of approvals; 0: for ever
	routes   func(t envelope.Task) (store.Candidates, bool) // nil: no agents are chosen
	limit    func(agent string) int                         // nil: 100 for each
	etiquette
	spoken  store.Protocol // instead of that; one without functions is none
	ran     sync.Map       // how often each task was run, *atomic.Int32 by its id
	log     journal
	writing sync.WaitGroup // to the ledger, beside the engine
	runners *store.Runners // of the agent far; nil: none
	killed  death          // what becomes of the steps that follow from transactions
	stop    func()         // has serving end
	end     func()         // waits for that as well, and lets go of all; once more does nothing
}

// newEngine makes an engine that is not started, with the agents "quick",
// which answers, and "slow", which works until it is ended. When the test is over,
// all that lies in inboxes is held to its dialect.
func newEngine(t testing.TB) *engine {
	slowtest.Parallel(t)
	e := &engine{
		t: t, dir: t.TempDir(),
		plays:   map[string]play{"quick": quick, "slow": slow},
		inboxes: map[string]store.Inbox{"editor": {File: "agents/editor/inbox.jsonl", Lease: time.Hour}},
		judge: func(t envelope.Task, _ time.Time) task.Verdict {
			return task.Verdict{Admit: true, Terms: task.Terms{Deadline: t.Deadline}}
		},
		retries: 1,
		found:   cut(context.Background()),
		opts:    store.Options{Workers: 4, Queue: 1000, Depth: 3, Children: 32},
		end:     func() {},
	}
	t.Cleanup(e.holdInboxes)
	return e
}

func startEngine(t testing.TB) *engine {
	e := newEngine(t)
	e.start()
	return e
}

// start opens the parts and serves until end, or until the test is over.
func (e *engine) start() {
	e.t.Helper()
	e.opts.Log = zerolog.New(&e.log)
	box, err := mailbox.Open(filepath.Join(e.dir, "box"))
	e.must(err)
	state, err := mailbox.OpenState(filepath.Join(e.dir, "state"), box.Path())
	e.must(err)
	memory, _, err := ledger.Open(state.LedgerPath())
	e.must(err)
	e.parts = store.Parts{Box: box, State: state, Ledger: memory, Artifacts: artifact.In(state.Path(), 0)}
	e.Dispatcher, err = dispatch.Open(e.t.Context(), e.parts, e.functions(), e.opts)
	e.must(err)
	if e.givesUp {
		e.RereadFor(0)
	}
	e.killed.undo()
	e.LoseSteps(e.killed.loses)
	ctx, cancel := context.WithCancel(context.Background())
	e.stop = cancel
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := e.Serve(ctx); err != nil {
			e.t.Errorf("Serve() = %v", err)
		}
	})
	e.end = sync.OnceFunc(func() {
		cancel()
		serving.Wait()
		e.writing.Wait()
		for _, part := range []io.Closer{e.Dispatcher, memory, state, box} {
			if err := part.Close(); err != nil {
				e.t.Errorf("close: %v", err)
			}
		}
	})
	e.t.Cleanup(func() { e.end() })
}

// restart ends serving and starts again on the same directory.
func (e *engine) restart() {
	e.t.Helper()
	e.end()
	e.start()
}

func (e *engine) functions() store.Agents {
	return store.Agents{
		Judge: func(t envelope.Task, now time.Time) task.Verdict { return e.judge(t, now) },
		Run: func(ctx context.Context, j task.Job, started func(runner.Process)) task.Outcome {
			e.runsOf(j.Task.ID).Add(1)
			return e.plays[j.Task.Agent](ctx, j)
		},
		Recover: func(ctx context.Context, _ task.Job) task.Outcome {
			if e.recovers != nil {
				return e.recovers(ctx)
			}
			return e.found
		},
		Refs: func(string) store.RefRule { return e.refs },
		HasDir: func(string) bool {
			if e.looksUp != nil {
				e.looksUp()
			}
			return e.dirs
		},
		Limit:   func(agent string) int { return e.limitOf(agent) },
		Reruns:  func(string) bool { return true },
		Retries: func(string) int { return e.retries },
		Backoff: func(string) time.Duration { return time.Millisecond },
		Known:   func(agent string) bool { return e.plays[agent] != nil || e.inboxes[agent].File != "" },
		Mode:    func(envelope.Control) envelope.Mode { return e.mode },
		Inbox:   func(agent string) store.Inbox { return e.inboxes[agent] },
		Answer:  e.answered,

		ApprovalTTL: func() time.Duration { return e.ttl },
		Candidates:  e.routes,
		Protocol:    e.protocol(),
		IsRemote:    func(agent string) bool { return e.runners != nil && agent == far },
		Runners:     e.runners,
	}
}

// runsOf counts the runs of a task, also those of engines before a restart.
func (e *engine) runsOf(id envelope.ID) *atomic.Int32 {
	n, _ := e.ran.LoadOrStore(id, new(atomic.Int32))
	return n.(*atomic.Int32)
}

func (e *engine) limitOf(agent string) int {
	if e.limit == nil {
		return 100
	}
	return e.limit(agent)
}

// quick answers at once.
func quick(_ context.Context, j task.Job) task.Outcome { return decision(j, "done") }

func decision(j task.Job, words string) task.Outcome {
	return task.Outcome{Result: envelope.Result{
		TaskID: j.Task.ID, AgentID: j.Task.Agent, Status: envelope.OK,
		Output: envelope.Output{Summary: fmt.Sprintf("%s, revision %d", words, j.Revision)},
	}}
}

// slow works until it is ended, and answers what an agent's run does then.
func slow(ctx context.Context, j task.Job) task.Outcome {
	<-ctx.Done()
	o := cut(ctx)
	o.Result.TaskID = j.Task.ID
	return o
}

func cut(ctx context.Context) task.Outcome {
	return task.Outcome{
		Exit:   task.Exit{Code: -1, Cause: task.CauseInterrupted},
		Result: envelope.Result{Status: envelope.Failed, Error: envelope.Error{Kind: envelope.RunLost, Message: fmt.Sprint(context.Cause(ctx))}},
	}
}

// send appends a task line and has it taken in. Members are added to the line.
func (e *engine) send(id, agent string, members ...string) {
	e.t.Helper()
	e.say(request(id, agent, members...))
}

// request is a task line of tester's.
func request(id, agent string, members ...string) string {
	return requestOf("tester", id, agent, members...)
}

func requestOf(requester, id, agent string, members ...string) string {
	line := fmt.Sprintf(`{"schema_version":"1.0","task_id":%q,"requester_id":%q,"target_agent":%q,"target_role":"executor",`+
		`"task_type":"work","description":"a task","input":{"refs":[],"payload":{}}`, id, requester, agent)
	return line + strings.Join(append([]string{""}, members...), ",") + "}"
}

// row returns the latest revision of a task; a zero one when there is none.
func (e *engine) row(id string) task.Task {
	e.t.Helper()
	rows, err := e.parts.Ledger.Revisions(context.Background(), envelope.ID(id))
	e.must(err)
	if len(rows) == 0 {
		return task.Task{}
	}
	return rows[len(rows)-1]
}

// await blocks until a task is in a state, and returns it; a done one is also
// settled.
func (e *engine) await(id string, state task.State) (row task.Task) {
	e.t.Helper()
	e.until(id+" is "+string(state), func() bool {
		row = e.row(id)
		return row.State == state && (state != task.Done || row.Put && row.Delivered)
	})
	return row
}

// awaitWork waits until the agent of a task is at work. A task with an intent alone is running too, and
// has asked for nothing yet.
func (e *engine) awaitWork(id string) task.Task {
	e.t.Helper()
	row := e.await(id, task.Running)
	e.until(id+" is at work", func() bool { return e.AtWork(row.Seq) })
	return row
}

// until looks, whenever the state directory or a result changes, until it sees what it waits for.
func (e *engine) until(what string, seen func() bool) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	met := false
	e.must(watcher.Watch(ctx, []string{e.parts.State.Path(), e.parts.Box.ResultsDir()}, 20*time.Millisecond, func() {
		if !met && seen() {
			met = true
			cancel()
		}
	}))
	if !met {
		e.t.Fatalf("waited two minutes until %s; the log says\n%s", what, e.log.String())
	}
}

// result returns the result file of a task; "" when there is none.
func (e *engine) result(id string) string {
	text, err := os.ReadFile(filepath.Join(e.parts.Box.ResultsDir(), id+".json"))
	if err != nil {
		return ""
	}
	return string(text)
}

// wantResult fails the test when a result file lacks some words.
func (e *engine) wantResult(id string, words ...string) {
	e.t.Helper()
	got := e.result(id)
	for _, w := range words {
		if !strings.Contains(got, w) {
			e.t.Errorf("result of %s = %s; want %q in it", id, got, w)
		}
	}
}

// wantHeld fails the test when a task is not held for exactly these reasons.
func (e *engine) wantHeld(id string, reasons ...task.Reason) {
	e.t.Helper()
	if row := e.row(id); row.State != task.Held || !slices.Equal(row.Reasons, reasons) {
		e.t.Errorf("%s is %s %v; want held %v", id, row.State, row.Reasons, reasons)
	}
}

// history returns the kinds of a task's events, and their data.
func (e *engine) history(id string) (kinds []string, data string) {
	e.t.Helper()
	events, err := e.parts.Ledger.Events(context.Background(), envelope.ID(id), 0, 1000)
	e.must(err)
	for _, event := range events {
		kinds = append(kinds, string(event.Kind))
		data += string(event.Data)
	}
	return kinds, data
}

// wantEvent fails the test when a task has no event of a kind, or more than one.
func (e *engine) wantEvent(id, kind string) {
	e.t.Helper()
	kinds, _ := e.history(id)
	n := len(slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k != kind }))
	if n != 1 {
		e.t.Errorf("%s has %d events %s in %v; want 1", id, n, kind, kinds)
	}
}

func (e *engine) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// A journal keeps what is logged.
type journal struct {
	mu   sync.Mutex // guards text
	text strings.Builder

	seen func(line string) // gets each message before the log; nil for none
}

// Write implements io.Writer.
func (j *journal) Write(p []byte) (int, error) {
	if j.seen != nil {
		j.seen(string(p))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// count says how often something was logged.
func (j *journal) count(message string) int { return strings.Count(j.String(), message) }
