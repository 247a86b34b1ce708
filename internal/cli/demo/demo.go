// Package demo has a mailbox full of life for people who look at mailboxd for the first time, and
// for tests of the page: a configuration, the tasks of a day, and an agent with several roles.
// Every run in it is a real one.
package demo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mailboxd/mailbox"
)

//go:embed config.yaml
var configuration string

//go:embed deployer.json reviewer.json auditor.json
var cards embed.FS

// Write writes the configuration of the demo into a directory, and returns its path. The program
// at self has the command demo-agent.
func Write(dir, self string) (string, error) {
	path := filepath.Join(dir, "config.yaml")
	root := filepath.Join(dir, "mailbox")
	text := strings.NewReplacer("SELF", fmt.Sprintf("%q", self), "ROOT", fmt.Sprintf("%q", root), "STATE", fmt.Sprintf("%q", filepath.Join(dir, "state"))).Replace(configuration)
	if err := errors.Join(os.Mkdir(root, 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		return "", err
	}
	for _, name := range []string{"deployer.json", "reviewer.json", "auditor.json"} {
		card, err := cards.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), card, 0o600)
		}
		if err != nil {
			return "", err
		}
	}
	return path, nil
}

// A line is a task of the demo.
type line struct {
	id, agent, requester, kind, words, payload string
}

// first are the tasks that are there at once.
var first = []line{
	{"release-notes-4.2", "writer", "ada", "write_notes", "Write the release notes of 4.2 from the commits since 4.1", `{"seconds": 2, "tokens": 18200, "cents": 41}`},
	{"flaky-test-clock", "tester", "ci", "run_tests", "Run TestClock two hundred times and say why it fails", `{"seconds": 3, "fail": "TestClock compares local time with UTC: 3 of 200 runs failed"}`},
	{"summary-incident-88", "writer", "grace", "summarize", "Summarize incident 88 for the weekly review", `{"seconds": 1, "tokens": 7400, "cents": 15}`},
	{"deploy-api-4.2", "deployer", "ada", "deploy", "Deploy api 4.2 to production, one region at a time", `{"seconds": 6, "tokens": 2100, "cents": 4}`},
	{"rotate-keys-eu", "deployer", "nightly", "rotate", "Rotate the signing keys of the EU region", `{"seconds": 5, "tokens": 900, "cents": 2}`},
	{"unit-tests-main", "tester", "ci", "run_tests", "Run the unit tests of main", `{"seconds": 2, "tokens": 300, "cents": 1}`},
	{"migrate-invoices", "writer", "ada", "refactor", "Move the invoices to the new schema, with tests", `{"seconds": 3600, "tokens": 64000, "cents": 190}`},
	{"fuzz-parser", "tester", "nightly", "run_tests", "Fuzz the parser, and keep each input that fails", `{"seconds": 2400, "tokens": 5200, "cents": 12}`},
}

// talks are the tasks in CAP: a plan with tasks below it, and an analysis with a question.
var talks = []string{
	`{"type":"delegation_notice","task_id":"q4-sales","sender_id":"orchestrator","recipient_id":"planner","context_summary":"Find out why sales fell in the last quarter","attachments":[]}`,
	`{"type":"delegation_notice","task_id":"churn-report","sender_id":"orchestrator","recipient_id":"analyst","context_summary":"Report on the customers who left; ask if anything is unclear","attachments":[]}`,
}

// routed are tasks in Clutch that name no agent: one for the agent that fits best, one that an
// agent works on for long, and one that waits until this agent is free.
var routed = []struct{ id, words, needs, payload string }{
	{"review-pr-812", "Review the change of the API in pull request 812", `"requires": ["skill:review@^1"], "prefers": ["domain:api"]`, `"seconds": 2, "tokens": 5300, "cents": 12`},
	{"audit-licences", "Audit the licences of all dependencies", `"requires": ["skill:audit"]`, `"seconds": 3000, "tokens": 22000, "cents": 48`},
	{"audit-access", "Audit who can reach the production keys", `"requires": ["skill:audit"]`, `"seconds": 3000, "tokens": 9000, "cents": 20`},
}

// later are the tasks that come while a person looks, one after the other.
var later = []line{
	{"unit-tests", "tester", "ci", "run_tests", "Run the unit tests of a pull request", `{"seconds": 8, "tokens": 350, "cents": 1}`},
	{"changelog", "writer", "grace", "write_notes", "Add the merged pull requests to the changelog", `{"seconds": 12, "tokens": 3100, "cents": 7}`},
	{"lint", "tester", "ci", "run_tests", "Lint a pull request", `{"seconds": 4, "tokens": 120, "cents": 0}`},
	{"review", "writer", "ada", "review", "Review a pull request, and name what it breaks", `{"seconds": 20, "tokens": 9100, "cents": 22}`},
	{"integration", "tester", "ci", "run_tests", "Run the integration tests", `{"seconds": 9, "fail": "the database did not start within 30 s"}`},
}

func (l line) String() string {
	return fmt.Sprintf(`{"schema_version": "1.0", "task_id": %q, "requester_id": %q, "target_agent": %q, "target_role": "executor", "task_type": %q, "description": %q, "input": {"refs": [], "payload": %s}, "budget_limit": {"tokens": 80000, "usd_cents": 250}}`,
		l.id, l.requester, l.agent, l.kind, l.words, l.payload)
}

// Begin appends the first tasks of the demo.
func Begin(root string) error {
	for _, l := range first {
		if _, _, err := mailbox.Append(root, []byte(l.String())); err != nil {
			return err
		}
	}
	for _, text := range talks {
		if _, _, err := mailbox.Append(root, []byte(text)); err != nil {
			return err
		}
	}
	for _, r := range routed {
		text := fmt.Sprintf(`{"v": "clutch/0.1", "id": "m-%s", "ts": %q, "thread_id": %q, "run_id": %q, "task_id": %q, "from": {"agent_id": "agent:user"}, "to": [], "type": "task.request", "payload": {"title": %q, %s}, %s}`,
			r.id, time.Now().UTC().Format(time.RFC3339), r.id, r.id, r.id, r.words, r.payload, r.needs)
		if _, _, err := mailbox.Append(root, []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// Go appends a task each time after a pause, until ctx ends.
func Go(ctx context.Context, root string, pause time.Duration) error {
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		next := later[n%len(later)]
		next.id = fmt.Sprintf("%s-%d", next.id, 100+n)
		if _, _, err := mailbox.Append(root, []byte(next.String())); err != nil {
			return err
		}
	}
}
