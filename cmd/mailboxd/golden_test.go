package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/access/api"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

var update = flag.Bool("update", false, "write what people see to testdata/golden")

// noon is when everybody looks.
var noon = time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)

// golden compares what a person sees with what one agreed to.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata/golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -run %s -update makes it", err, t.Name())
	}
	if got != string(want) {
		t.Errorf("%s is not what was agreed to (-want +got):\n%s", name, cmp.Diff(string(want), got))
	}
}

// screens are the ones people have.
var screens = map[string]term.Screen{
	"pipe":   {},
	"wide":   {Columns: 120, Rows: 24, Colour: true, Redraws: true},
	"narrow": {Columns: 50, Rows: 6, Redraws: true}, // and NO_COLOR
}

func TestWhatPsAndShowSay(t *testing.T) {
	d := dayOf(t)
	list, err := d.List(t.Context(), (&psFlags{}).query(noon))
	if err != nil {
		t.Fatal(err)
	}
	tasks := list.Tasks
	around, err := d.WaitContext(t.Context(), tasks, noon)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range screens {
		var out bytes.Buffer
		s.Writer = &out
		around.Served = true
		err := around.Table(tasks).Print(s)
		golden(t, "ps."+name, out.String())
		out.Reset()
		for _, id := range []envelope.ID{"failed", "deploy-7", "running"} {
			file, err1 := d.Details(t.Context(), id)
			err = errors.Join(err, err1, tellOf(t, d, file, s, noon))
			out.WriteString("--------\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "show."+name, strings.ReplaceAll(out.String(), d.Root, "ROOT"))
	}
}

func TestWhatALiveScreenShows(t *testing.T) {
	d := dayOf(t)
	list, err := d.List(t.Context(), (&psFlags{}).query(noon))
	if err != nil {
		t.Fatal(err)
	}
	tasks := list.Tasks
	around, err := d.WaitContext(t.Context(), tasks, noon)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := screens["narrow"]
	s.Writer = &out
	f := &frames{}
	err = errors.Join(f.draw(s, around.Table(tasks).Lines(s), 0), f.draw(s, around.Table(tasks[:1]).Lines(s), 0), f.draw(s, nil, 0))
	out.WriteString("--------\n")
	err = errors.Join(err, around.Feed(tasks[len(tasks)-2:], s))
	for turn, said := range []string{"running  reading the archive of the whole world, part 1 of 1,000", "held  waits for approval"} {
		out.WriteString(term.SpinnerLine(s, turn, 75*time.Second, said) + "\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "live", strings.ReplaceAll(out.String(), "\x1b", "ESC"))
}

func TestWhatAgentsSays(t *testing.T) {
	views := []view.Agent{
		{ID: "openclaw.monitor", Binding: "exec", Found: "/usr/local/bin/monitor.sh", Manifest: "/etc/mailboxd/monitor.json", Concurrency: 2, Running: 1, Queued: 17},
		{ID: "reviewer", Binding: "worker", Found: "/usr/bin/python3", Concurrency: 8, Paused: true, Held: 3},
		{ID: "gone", Binding: "exec", Concurrency: 1, Problem: `exec: "gone.sh": executable file not found in $PATH`},
	}
	for name, s := range screens {
		var out bytes.Buffer
		s.Writer = &out
		if err := view.AgentTable(views).Print(s); err != nil {
			t.Fatal(err)
		}
		golden(t, "agents."+name, out.String())
	}
}

func TestNoLineIsWiderThanTheScreen(t *testing.T) {
	list, err := dayOf(t).List(t.Context(), (&psFlags{}).query(noon))
	if err != nil {
		t.Fatal(err)
	}
	tasks := list.Tasks
	for columns := 1; columns < 100; columns++ {
		s := term.Screen{Columns: columns}
		for _, line := range (view.WaitContext{Now: noon}).Table(tasks).Lines(s) {
			if term.Width(line) > columns {
				t.Errorf("a line of %d columns on a screen of %d: %q", term.Width(line), columns, line)
			}
		}
	}
}

// dayOf is a mailbox with something of everything.
func dayOf(t *testing.T) *reader.Reader {
	t.Helper()
	root, dir := t.TempDir(), filepath.Join(t.TempDir(), "state")
	state, err := mailbox.OpenState(dir, root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { state.Close() })
	memory, _, err := ledger.Open(state.LedgerPath())
	if err != nil {
		t.Fatal(err)
	}
	result := `{"schema_version":"1.0","task_id":"failed","agent_id":"openclaw.monitor","status":"error","output":{"summary":"no answer","actions":[]},"time_used":{"started_at":"2026-03-09T11:00:00Z","finished_at":"2026-03-09T11:00:03Z","wall_ms":3000},"error":{"kind":"agent_crashed","message":"exit 3: cannot read\u001b[2J the archive"}}`
	err = errors.Join(os.Mkdir(filepath.Join(root, "results"), 0o700),
		os.WriteFile(filepath.Join(root, "results/failed.json"), []byte(result), 0o600),
		memory.Update(context.Background(), writeDay), memory.Close())
	if err != nil {
		t.Fatal(err)
	}
	books, err := ledger.OpenReader(state.LedgerPath())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { books.Close() })
	return &reader.Reader{Root: root, State: state, Client: clientOf(&api.Records{Root: root, State: state, Ledger: books})}
}

func clientOf(records *api.Records) *client.Client { return client.Within(records.Handler()) }

func writeDay(tx *ledger.Tx) error {
	row := func(id envelope.ID, state task.State, age time.Duration, more func(*task.Task)) (int64, error) {
		task := task.Task{
			ID: id, Revision: 1, Hash: string(id), Dialect: "ainl", State: state, Agent: "openclaw.monitor",
			Requester: "planner", Type: "execute_monitor", Received: noon.Add(-age), File: "tasks/openclaw_agent_tasks.jsonl",
		}
		if more != nil {
			more(&task)
		}
		request := taskLine(string(id), task.Agent, `"human_approver":"sre-oncall@example.com"`)
		return tx.Add(task, []byte(request))
	}
	held := func(until time.Duration, reasons ...task.Reason) func(*task.Task) {
		return func(t *task.Task) {
			t.Reasons = reasons
			if until > 0 {
				t.Until = noon.Add(until)
			}
		}
	}
	ended := func(status envelope.Status, kind envelope.Kind) func(*task.Task) {
		return func(t *task.Task) { t.Status, t.Kind, t.Attempt, t.Finished = status, kind, 1, noon }
	}
	_, err1 := row("nightly-report", task.Done, 50*time.Hour, ended(envelope.OK, ""))
	failed, err2 := row("failed", task.Done, time.Hour, ended(envelope.Failed, envelope.AgentCrashed))
	asked, err3 := row("deploy-7", task.Held, 10*time.Minute, held(26*time.Hour, task.Approval))
	_, err4 := row("deploy-8", task.Held, 9*time.Minute, held(13*time.Hour, task.Approval, task.ChangeWindow))
	_, err5 := row("again", task.Held, 8*time.Minute, held(time.Minute, task.Capacity))
	_, err6 := row("kept", task.Held, 7*time.Minute, held(0, task.Operator, task.Recovered))
	running, err7 := row("running", task.Running, 6*time.Minute, func(t *task.Task) { t.Attempt = 1; t.Deadline = noon.Add(3 * time.Hour) })
	_, err8 := row("next", task.Queued, 5*time.Minute, nil)
	_, err9 := row("later-日本語のエージェント", task.Queued, 4*time.Second, func(t *task.Task) { t.ID = "later"; t.Agent = "openclaw.monitor" })
	return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, writeStory(tx, failed, asked, running))
}

func writeStory(tx *ledger.Tx, failed, asked, running int64) error {
	log := func(id envelope.ID, ago time.Duration, kind, data string) error {
		return tx.Log(task.Event{Time: noon.Add(-ago), Kind: task.Kind(kind), Task: id, Revision: 1, Data: []byte(data)})
	}
	run := task.Run{Task: failed, Attempt: 1, ID: "r1", Intent: noon.Add(-time.Hour), Boot: "b"}
	over := run
	over.Started, over.Finished, over.ExitCode = noon.Add(-time.Hour), noon.Add(-time.Hour+3*time.Second), 3
	sum := strings.Repeat("0123456789abcdef", 4)
	plan := client.Plan{
		Format: client.PlanFormat, Command: []string{"/usr/local/bin/deploy.sh", "--to", "all hosts"}, Executable: "/usr/local/bin/deploy.sh",
		Tools: []string{"http"}, Files: map[string]string{"/usr/local/bin/deploy.sh": sum}, Env: map[string]string{"DEPLOY_TOKEN": sum}, Manifest: sum,
	}
	consent := task.Consent{
		Task: asked, Stage: envelope.ApprovalPre, Digest: "d", Plan: plan.Encode(), Approver: "sre-oncall@example.com",
		Asked: noon.Add(-10 * time.Minute), Expires: noon.Add(26 * time.Hour),
	}
	return errors.Join(
		tx.Ask(consent), tx.StartRun(run), tx.FinishRun(over),
		tx.StartRun(task.Run{Task: running, Attempt: 1, ID: "r2", Intent: noon.Add(-2 * time.Minute), Boot: "b"}),
		log("running", 2*time.Minute, "task.started", `{"attempt":1,"run_id":"r2"}`),
		log("failed", time.Hour, "task.accepted", `{"file":"tasks/openclaw_agent_tasks.jsonl","offset":120,"hash":"00ff","warnings":["input.refs[0].uri: is not there"]}`),
		log("failed", time.Hour, "task.started", `{"attempt":1,"run_id":"r1"}`),
		log("failed", 59*time.Minute, "task.finished", `{"status":"error","exit_code":3,"took_ms":3000,"error":"agent_crashed","message":"exit 3"}`),
		log("deploy-7", 10*time.Minute, "task.accepted", `{"file":"tasks/openclaw_agent_tasks.jsonl","offset":240,"held":["approval"]}`),
		log("deploy-7", 10*time.Minute, "approval.asked", `{"approver":"sre-oncall@example.com","stage":"pre","until":"2026-03-10T14:00:00Z"}`),
		log("deploy-7", 5*time.Minute, "approval.refused", `{"by":"planner","why":"is the requester\u001b[2J"}`),
		log("deploy-7", 4*time.Minute, "something.new", `{"colour":"blue","n":3}`),
	)
}

func TestTheSummaryCountsAndNamesTheLastResult(t *testing.T) {
	d := dayOf(t)
	memory, _, err := ledger.Open(d.State.LedgerPath())
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	s := view.Summary{Root: d.Root, Ledger: memory}
	want := "2 queued, 1 running, 4 held; last: failed error"
	for range 2 { // again, when nothing has happened since
		if got, err := s.Line(t.Context()); got != want || err != nil {
			t.Errorf("Line() = %q, %v; want %q", got, err, want)
		}
	}
	tasks := filepath.Join(d.Root, "tasks")
	err = errors.Join(os.Mkdir(tasks, 0o700), os.WriteFile(filepath.Join(tasks, "a.jsonl"), nil, 0o600), os.Truncate(filepath.Join(tasks, "a.jsonl"), 7<<20))
	if err != nil {
		t.Fatal(err)
	}
	want = "7 MB of tasks to read, " + want
	if got, err := s.Line(t.Context()); got != want || err != nil {
		t.Errorf("Line() = %q, %v; want %q", got, err, want)
	}
}

// tellOf prints the details of a task.
func tellOf(t *testing.T, r *reader.Reader, file client.TaskDetails, s term.Screen, now time.Time) error {
	t.Helper()
	around, err := r.WaitContext(t.Context(), []client.Task{file.Task}, now)
	if err != nil {
		return err
	}
	return (&view.Details{TaskDetails: file}).Print(s, around, r.Files(file))
}
