package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/runner"
)

// answered is the outcome of a request to which an agent answered so.
func answered(t *testing.T, more, stdout string, set func(*agent.Binding), roots ...string) task.Outcome {
	t.Helper()
	b := playing(t, "hang")
	if set != nil {
		set(&b)
	}
	j := jobFor(t, request(more))
	ended(t, j, stdout, task.Exit{PID: 1 << 30})
	return bound(t, b, roots...).Recover(t.Context(), j)
}

// AINL-43 and F5.
func TestPromisedFieldsHaveToBeThere(t *testing.T) {
	const answer = `{"status": "ok", "output": {"summary": "s", "sla": {"p99": 3, "gone": null}, "a.b": 1, "nothing": null}}`
	for fields, status := range map[string]envelope.Status{
		`"status", "summary", "actions"`: envelope.OK,
		`"sla"`:                          envelope.OK,
		`"sla.p99", "output.sla.p99"`:    envelope.OK,
		`"a.b"`:                          envelope.OK,
		`"findings"`:                     envelope.Failed,
		`"sla.p50"`:                      envelope.Failed,
		`"sla.gone"`:                     envelope.Failed,
		`"nothing"`:                      envelope.Failed,
		`"confidence"`:                   envelope.Failed,
	} {
		got := answered(t, `, "required_output_contract": {"format": "json", "must_include_fields": [`+fields+`]}`, answer, nil)
		kind := envelope.Kind("")
		if status == envelope.Failed {
			kind = envelope.ContractViolation
		}
		expect(t, fields, got, status, kind)
		if got.Result.Output.Summary != "s" {
			t.Errorf("%s: summary = %q; want the answer kept", fields, got.Result.Output.Summary)
		}
	}
}

func TestAnHonestFailureOwesNoFields(t *testing.T) {
	got := answered(t, `, "required_output_contract": {"must_include_fields": ["findings"]}`,
		`{"status": "error", "output": {"summary": "could not"}, "error": {"kind": "quota"}}`, nil)
	expect(t, "error", got, envelope.Failed, "quota")
}

// AINL-46.
func TestSpendingMoreThanTheBudgetIsAnError(t *testing.T) {
	const answer = `{"status": "ok", "output": {"summary": "s"}, "cost_used": {"tokens": 10, "usd_cents": 3}}`
	for budget, over := range map[string]bool{
		`{}`:                              false,
		`{"tokens": 10, "usd_cents": 3}`:  false,
		`{"tokens": 9}`:                   true,
		`{"usd_cents": 0}`:                true,
		`{"tokens": 100, "usd_cents": 2}`: true,
	} {
		got := answered(t, `, "budget_limit": `+budget, answer, nil)
		status, kind := envelope.OK, envelope.Kind("")
		if over {
			status, kind = envelope.Failed, envelope.BudgetExceeded
		}
		expect(t, budget, got, status, kind)
		if got.Result.Review.Required != over || got.Result.Output.Summary != "s" {
			t.Errorf("%s: result = %+v; want review: %v, and the output kept", budget, got.Result, over)
		}
	}
}

// AINL-15.
func TestAnAdvisorWhoActsIsReviewed(t *testing.T) {
	advisory := func(b *agent.Binding) {
		b.Manifest = &envelope.Manifest{AgentID: b.ID, ExecutionMode: envelope.Advisory}
	}
	for status, review := range map[string]bool{"pending": false, "skipped": false, "executed": true} {
		got := answered(t, "", `{"summary": "s", "actions": [{"kind": "k", "description": "d", "status": "`+status+`"}]}`, advisory)
		expect(t, status, got, envelope.OK, "")
		if got.Result.Review.Required != review {
			t.Errorf("%s: review = %+v; want %v", status, got.Result.Review, review)
		}
	}
}

// artifacts makes a root with files, and a link out of it.
func artifacts(t *testing.T) (root, inside, outside string) {
	t.Helper()
	root, outside = t.TempDir(), file(t, "secret", "")
	inside = filepath.Join(root, "artifacts")
	err := os.Mkdir(inside, 0o700)
	for _, name := range []string{"report.md", "a b.md"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(inside, name), nil, 0o600))
	}
	if err = errors.Join(err, os.Symlink(outside, filepath.Join(inside, "link"))); err != nil {
		t.Fatal(err)
	}
	return root, inside, outside
}

// AINL-67 and row 30.
func TestOnlyFilesOfTheRunOrTheMailboxAreArtifacts(t *testing.T) {
	root, inside, outside := artifacts(t)
	for uri, kept := range map[string]bool{
		"file://" + inside + "/report.md":   true,
		"file://" + inside + "/a%20b.md":    true,
		"file://artifacts/report.md":        true,
		"file:artifacts/report.md":          true,
		"file://stdout":                     true, // of the run itself
		"https://example.com/x":             true, // nobody opens it
		"artifact:1234":                     true,
		"file://" + inside + "/missing.md":  false,
		"file://" + inside + "/link":        false,
		"file:///etc/passwd":                false,
		"file://" + outside:                 false,
		"file://../../etc/passwd":           false,
		"file://artifacts/../../etc/passwd": false,
		"FILE:///etc/passwd":                false,
		"file://%zz":                        false,
	} {
		got := answered(t, "", `{"output": {"summary": "s"}, "artifact_refs": [{"kind": "report", "uri": "`+uri+`"}]}`, nil, root)
		expect(t, uri, got, envelope.OK, "")
		if has := slices.Contains(got.Result.Artifacts, envelope.Ref{Kind: "report", URI: uri}); has != kept {
			t.Errorf("%s: kept = %v; want %v", uri, has, kept)
		}
		if got.Result.Review.Required == kept {
			t.Errorf("%s: review = %+v; want %v", uri, got.Result.Review, !kept)
		}
	}
}

func TestEachCauseOfAnEndHasItsKind(t *testing.T) {
	for cause, want := range map[task.Cause]envelope.Kind{
		task.CauseTimeout:        envelope.Timeout,
		task.CauseIdleTimeout:    envelope.IdleTimeout,
		task.CauseDeadline:       envelope.DeadlineExceeded,
		task.CauseOutputTooLarge: envelope.OutputTooLarge,
		task.CauseMemory:         envelope.OutOfMemory,
		task.CauseInterrupted:    envelope.RunLost,
	} {
		j := jobFor(t, request(""))
		ended(t, j, `{"status": "ok", "output": {"summary": "in time"}}`, task.Exit{PID: 1 << 30, Cause: cause})
		got := bound(t, playing(t, "hang")).Recover(t.Context(), j)
		expect(t, string(cause), got, envelope.Failed, want)
		if got.Result.Output.Summary != "in time" || !got.Result.Review.Required {
			t.Errorf("%s: result = %+v; want the answer kept, with review", cause, got.Result)
		}
	}
}

// Row 43.
func TestARunOfWhichNobodyKnowsTheEndIsLost(t *testing.T) {
	j := jobFor(t, request(""))
	expect(t, "nothing there", bound(t, playing(t, "hang")).Recover(t.Context(), j), envelope.Failed, envelope.RunLost)

	j = jobFor(t, request(""))
	for name, text := range map[string]string{
		"stdout":    `{"status": "ok", "output": {"summary": "was done"}}`,
		"meta.json": `{"process": {"pid": 1073741824}, "started_at": "2026-03-09T20:00:00Z"}`,
	} {
		if err := os.WriteFile(filepath.Join(j.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := bound(t, playing(t, "hang")).Recover(t.Context(), j)
	expect(t, "an answer there", got, envelope.Failed, envelope.RunLost)
	if got.Result.Output.Summary != "was done" || !got.Result.Review.Required {
		t.Errorf("result = %+v; want the answer kept, with review", got.Result)
	}
	if !strings.HasPrefix(string(got.Result.EncodeLine()), "{") || got.Exit.PID != 1<<30 || got.Result.Time.Started.IsZero() {
		t.Errorf("exit = %+v; want what meta.json says of it", got.Exit)
	}
}

// What a run printed is not synced, so a power cut may leave how it exited and
// only half of its words.
func TestHalfAnAnswerThatAMachineLeftIsNone(t *testing.T) {
	b := playing(t, "tell")
	b.Output = agent.Text
	j := jobFor(t, request(""))
	agents := bound(t, b)
	expect(t, "whole", agents.Run(t.Context(), j, nil), envelope.OK, "")
	expect(t, "found later", agents.Recover(t.Context(), j), envelope.OK, "")
	if err := os.Truncate(filepath.Join(j.Dir, runner.StdoutFile), 7); err != nil {
		t.Fatal(err)
	}
	expect(t, "cut short", agents.Recover(t.Context(), j), envelope.Failed, envelope.RunLost)
}

func TestLastWordsComeFromTheRunAlone(t *testing.T) {
	for name, create := range map[string]func(path string) error{
		"a link out of the run": func(path string) error { return os.Symlink(file(t, "secret", "s3cret"), path) },
		"a FIFO":                func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		j := jobFor(t, request(""))
		ended(t, j, "", task.Exit{PID: 1 << 30, Code: 3})
		stderr := filepath.Join(j.Dir, "stderr")
		if err := errors.Join(os.Remove(stderr), create(stderr)); err != nil {
			t.Fatal(err)
		}
		got := bound(t, playing(t, "hang")).Recover(t.Context(), j)
		if want := "the agent exited with status 3"; got.Result.Error.Message != want {
			t.Errorf("%s: message = %q; want %q", name, got.Result.Error.Message, want)
		}
	}
}
