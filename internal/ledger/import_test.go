package ledger_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/internal/index"
	"mailboxd/internal/journal"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// earlier puts the ledger of version 8 into a new state directory, as a daemon left it that was
// killed, and returns its path.
func earlier(t *testing.T) string {
	t.Helper()
	packed, err := os.Open("../ledgerimport/testdata/version8.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unzipped, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(dir, "ledger.db")
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, header.Name), text)
	}
}

// wantAnswers checks that a ledger answers as the one of version 8 did.
func wantAnswers(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	want, err := os.ReadFile("../ledgerimport/testdata/version8.answers")
	if err != nil {
		t.Fatal(err)
	}
	files, err := l.Files(t.Context())
	letters, failed := l.DeadLetters(t.Context(), 1000)
	news, unread := l.Announcements(t.Context())
	if err := errors.Join(err, failed, unread); err != nil {
		t.Fatal(err)
	}
	got := answersOf(t, l, map[string]any{"files": files, "dead letters": letters, "announcements": news})
	if diff := cmp.Diff(lines(want), lines(got)); diff != "" {
		t.Errorf("answers differ (-want +got):\n%s", diff)
	}
}

func lines(text []byte) (list []string) {
	for line := range bytes.Lines(text) {
		list = append(list, string(line))
	}
	return list
}

func TestAnImportedLedgerAnswersAsTheEarlierOneDid(t *testing.T) {
	path := earlier(t)
	var done, total int
	l, opened, err := ledger.OpenWith(path, ledger.Options{Progress: func(d, of int) { done, total = d, of }})
	if err != nil || opened != (ledger.Opened{}) {
		t.Fatalf("Open() = %+v, %v; want nil and nothing lost", opened, err)
	}
	if done != 9 || total != 9 {
		t.Errorf("the last progress is %d of %d; want 9 of 9", done, total)
	}
	wantAnswers(t, l)
	closeLedger(t, l)
	verifyJournal(t, path)

	before := filesOf(t, ledger.Dir(path))
	l, opened, err = ledger.OpenWith(path, ledger.Options{Progress: func(int, int) { t.Error("it is imported again") }})
	if err != nil || opened != (ledger.Opened{}) {
		t.Fatalf("Open(again) = %+v, %v; want nil and nothing lost", opened, err)
	}
	wantAnswers(t, l)
	closeLedger(t, l)
	if diff := cmp.Diff(before, filesOf(t, ledger.Dir(path))); diff != "" {
		t.Errorf("the second start has changed the journal (-before +after):\n%s", diff)
	}
	if err := index.Remove(filepath.Join(filepath.Dir(path), "index.db")); err != nil {
		t.Fatal(err)
	}
	wantAnswers(t, openAt(t, path)) // of an index that is made of the journal
}

// filesOf returns the files of a directory.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		text, failed := os.ReadFile(filepath.Join(dir, e.Name()))
		files[e.Name()], err = string(text), errors.Join(err, failed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// importNow imports a ledger and closes it.
func importNow(t *testing.T, path string) {
	t.Helper()
	l, opened, err := ledger.Open(path)
	if err != nil || opened != (ledger.Opened{}) {
		t.Fatalf("Open() = %+v, %v; want nil and nothing lost", opened, err)
	}
	closeLedger(t, l)
}

func closeLedger(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// verifyJournal returns the end of a journal.
func verifyJournal(t *testing.T, path string) journal.Hash {
	t.Helper()
	report, err := journal.Verify(t.Context(), ledger.Dir(path))
	if err != nil || report.NoHead || report.Torn > 0 {
		t.Fatalf("Verify() = %+v, %v; want a whole journal", report, err)
	}
	return report.End.Hash
}

// What is alive goes on after the import.
func TestTasksOfAnEarlierLedgerGoOn(t *testing.T) {
	path := earlier(t)
	l := openAt(t, path)
	last, err := l.LastEvent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	update(t, l, func(tx *ledger.Tx) error {
		run, found, err := tx.LastRun(6)
		if err != nil || !found || run.Attempt != 2 || run.PID != 4712 || run.PIDStart != 1<<40 || run.Boot != "boot-3" || run.Terms.Timeout != time.Minute {
			t.Errorf("LastRun() = %+v, %v, %v; want the one that is alive", run, found, err)
		}
		run.Started, run.Finished, run.Tokens = noon, noon.Add(time.Second), new(int64)
		err = tx.FinishRun(run)
		moved, failed := tx.Move(6, task.Running, 2, task.Change{To: task.Done, Status: "ok", Result: []byte("{}")})
		if !moved {
			t.Error("the live task is not running")
		}
		c, _, asked := tx.Consent(3, envelope.ApprovalPre)
		c.Decision = task.Approved
		decided, unknown := tx.Decide(task.Undecided, c)
		if !decided {
			t.Error("the open approval cannot be decided")
		}
		return errors.Join(err, failed, asked, unknown)
	})
	if seqs := add(t, l, named("next", 1, task.Queued)); seqs[0] != 10 {
		t.Errorf("the next task has seq %d; want 10", seqs[0])
	}
	update(t, l, func(tx *ledger.Tx) error {
		return tx.Log(task.Event{Time: noon, Kind: "next", Task: "next", Revision: 1})
	})
	events, err := l.Events(t.Context(), "", last, 100)
	if err != nil || len(events) == 0 || events[len(events)-1].Kind != "next" || events[0].Seq <= last {
		t.Errorf("events after %d are %+v, %v; want the new ones", last, events, err)
	}
	if reserved, err := l.Balance(t.Context(), "requester:sre@example.com", "2026-03-09"); err != nil || reserved.Reserved.Tokens != 0 {
		t.Errorf("the balance is %+v, %v; want nothing reserved", reserved, err)
	}
}

// The lines of a task are in the order in which things happened.
func TestTheJournalOfAnImportHasATaskInItsOrder(t *testing.T) {
	path := earlier(t)
	importNow(t, path)
	var got []string
	numbers := map[uint64]bool{}
	if _, err := journal.Replay(ledger.Dir(path), journal.Position{}, func(e *journal.Event) error {
		numbers[e.N] = true
		if e.At.Year() < 2025 && e.Task != "" || e.Task != "report" {
			return nil
		}
		line := fmt.Sprintf("%d %s", e.Revision, e.Kind)
		if e.Kind == "row.events" {
			line += " " + strings.Split(string(e.Data), `"`)[7]
		}
		for _, b := range e.Bodies {
			line += " " + b.Name
		}
		got = append(got, line)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"1 row.tasks request", "1 row.events task.accepted", "1 row.runs", "1 row.events budget.reserved", "1 row.events task.started",
		"1 row.events budget.settled", "1 row.events task.done", "1 row.tasks result.string",
		"2 row.tasks request.string", "2 row.events task.held", "2 row.approvals",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the lines of the task are (-want +got):\n%s", diff)
	}
	if numbers[1] {
		t.Error("the journal has event 1, as the earlier ledger had")
	}
}

// bodyTexts are texts that a body may have.
var bodyTexts = []string{
	"", " ", "{}", " {} ", "{}\n", "[1,\r2]", `{"a":1,"a":2}`, `{"n":1.0,"m":30000000000000000000000000001}`, "nul", `"\ud800"`, "\xff", "\"\xff\"", "a\x00b",
	"\ufeff{}", `{"a":"<&>\u2028"}`, "null", "{}{}", "1,2", "true ", "\t1",
}

func TestBodiesOfAnEarlierLedgerKeepTheirBytes(t *testing.T) {
	path := earlier(t)
	runSQL(t, path, "DELETE FROM results; UPDATE tasks SET put = 0")
	for i, text := range bodyTexts {
		runSQL(t, path, fmt.Sprintf(`INSERT INTO tasks SELECT %d, 'body-%[1]d', 1, 1, state, attempt, reasons, until, status, kind, put, delivered, replaces, agent, requester, type,
			dialect, hash, result_sum, deadline, received, finished, file, offset, parent, depth FROM tasks WHERE seq = 1;
			INSERT INTO requests VALUES (%[1]d, x'%[2]x'); INSERT INTO results VALUES (%[1]d, x'%[2]x');
			INSERT INTO messages SELECT %[1]d, time, dialect, act, '', '', %[1]d, '', '', sender, recipient, via, hash, '', '', NULL, x'%[2]x' FROM messages WHERE seq = 2`, 100+i, text))
	}
	l := openAt(t, path)
	for i, want := range bodyTexts {
		raw, err := l.Raw(t.Context(), int64(100+i))
		result, failed := l.Result(t.Context(), int64(100+i))
		about, unread := l.About(t.Context(), int64(100+i))
		if err := errors.Join(err, failed, unread); err != nil || len(about) != 1 {
			t.Fatalf("%q: %v, %d messages", want, err, len(about))
		}
		for what, got := range map[string][]byte{"request": raw, "result": result, "message": about[0].Body} {
			if string(got) != want {
				t.Errorf("the %s is %q; want %q", what, got, want)
			}
		}
	}
}

func TestVersion1IsImported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	script, err := os.ReadFile("../ledgerimport/testdata/version1.sql")
	if err != nil {
		t.Fatal(err)
	}
	runSQL(t, path, string(script))
	l := openAt(t, path)
	rows, err := l.Revisions(t.Context(), "report")
	if err != nil || len(rows) != 2 {
		t.Fatalf("Revisions() = %v, %v; want 2", ids(rows), err)
	}
	held := rows[1]
	if held.State != task.Held || !held.Latest || !held.Replaces || len(held.Reasons) != 2 || held.Deadline.Year() != 9999 {
		t.Errorf("revision 2 = %+v; want it held for two reasons with a deadline in 9999", held)
	}
	result, err := l.Result(t.Context(), rows[0].Seq)
	if err != nil || string(result) != `{"status":"ok"}` {
		t.Errorf("Result() = %s, %v", result, err)
	}
	runs, err := l.Runs(t.Context(), rows[0].Seq)
	if err != nil || len(runs) != 1 || *runs[0].Tokens != 7 || runs[0].USDCents != nil {
		t.Errorf("Runs() = %+v, %v; want one of 7 tokens and unknown cents", runs, err)
	}
	events, err := l.Events(t.Context(), "", 0, 10)
	if err != nil || len(events) != 2 || events[0].Task != "report" || events[1].Task != "" {
		t.Errorf("Events() = %+v, %v; want one of the task and one of none", events, err)
	}
}

// A daemon that ran and had nothing to do leaves a ledger without rows.
func TestAnEarlierLedgerWithoutRowsIsImported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	for version := 1; version <= 8; version++ {
		script, err := os.ReadFile(fmt.Sprintf("../ledgerimport/schema/%d.sql", version))
		if err != nil {
			t.Fatal(err)
		}
		runSQL(t, path, fmt.Sprintf("%s; PRAGMA user_version = %d", script, version))
	}
	for range 2 {
		importNow(t, path)
	}
}

// tableNames are the tables of earlier versions, with their names in the index.
var tableNames = map[string]string{
	"tasks": "tasks", "runs": "runs", "approvals": "approvals", "deliveries": "deliveries", "talks": "conversations", "messages": "messages",
	"speakers": "announcements", "accounts": "accounts", "pauses": "pauses", "files": "files", "dead_letters": "dead_letters", "losses": "losses",
	"events": "events",
}

func TestEveryRowOfAnEarlierLedgerIsInTheIndex(t *testing.T) {
	path := earlier(t)
	importNow(t, path)
	for earlier, now := range tableNames {
		columns := "*"
		switch earlier {
		case "tasks":
			columns = "seq, id, revision, latest, hash, dialect, state, attempt, reasons, until, agent, requester, type, deadline, received, finished, " +
				"file, offset, status, kind, result_sum, put, delivered, replaces, parent, depth"
		case "runs":
			columns = "task, attempt, run_id, intent, pid, pid_start, boot, started, finished, exit_code, signal, cause, tokens, usd_cents, terms, " +
				"reserved_tokens, reserved_cents, lender, lender_attempt, settled"
		case "approvals":
			columns = "seq, task, stage, digest, plan, approver, asked, expires, decision, decided, decider, note"
		case "messages":
			columns = "seq, time, dialect, act, message, cause, task, thread, trace, sender, recipient, via, hash, lost, inbox"
		}
		want := rowsOf(t, path+".imported", earlier, columns)
		got := rowsOf(t, filepath.Join(filepath.Dir(path), "index.db"), now, columns)
		if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
			t.Errorf("%s has %d rows, and %s differs (-want +got):\n%s", earlier, len(want), now, diff)
		}
	}
}

// rowsOf returns the rows of a table, in the order of their keys.
func rowsOf(t *testing.T, path, table, columns string) (list []string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT " + columns + " FROM " + table + " ORDER BY 1, 2")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	for err == nil && rows.Next() {
		values, into := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		err = rows.Scan(into...)
		list = append(list, fmt.Sprintf("%#v", values))
	}
	if err := errors.Join(err, rows.Err()); err != nil {
		t.Fatal(err)
	}
	return list
}

// runSQL runs SQL on the file at path, past the ledger.
func runSQL(t *testing.T, path, script string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec(script)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
