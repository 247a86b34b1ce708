package torture_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
)

// check holds the daemon to everything it promised.
func (s *site) check(t *testing.T, b *book) {
	t.Helper()
	runs, err := s.diary()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range b.promises {
		r, err := s.read(p.id)
		if err != nil {
			t.Errorf("task %s has no result: %v", p.id, err)
			continue
		}
		if err := s.judge(p, r, runs); err != nil && !b.explains(p, r, runs) && !s.damage.explains(b, p, r, runs) {
			t.Errorf("task %s: %v", p.id, err)
		}
	}
	followers := 0
	for _, p := range b.promises {
		if p.key != "" && p.key != p.id {
			followers++
		}
	}
	t.Logf("%d requests had the idempotency key of another one", followers)
	s.checkDiary(t)
	for path, want := range b.strays {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("foreign file %s: %q, %v; want it untouched", path, got, err)
		}
	}
	s.checkLetters(t, b)
	s.checkCallbacks(t, b)
	s.checkInbox(t, b)
	s.checkTold(t, b)
	s.checkSandboxes(t)
	s.checkArtifacts(t)
	s.checkAsked(t, runs)
	if s.damage == nil {
		s.audit(t)
	}
	agents, _ := s.processes()
	for _, pid := range agents {
		if s.damage.orphaned(pid) {
			continue
		}
		t.Errorf("a process of a run is left: %s", describe(pid))
	}
}

// judge compares a result with what may be expected.
func (s *site) judge(p promise, r envelope.Result, runs map[key]execution) error {
	latest := runs[key{p.id, p.version}]
	if p.key != "" && p.key != p.id {
		return s.judgeFollower(p, r, latest)
	}
	if (p.asks == "pre" || p.asks == "both") && latest.began > 0 && !latest.agreed {
		return fmt.Errorf("it ran, and nobody had agreed to that")
	}
	switch p.fate {
	case refused:
		if r.Status != envelope.Rejected || latest.began > 0 {
			return fmt.Errorf("status %s after %d runs; want it rejected and never run", r.Status, latest.began)
		}
	case answered:
		if text, err := os.ReadFile(s.result(p.id)); err != nil || string(text) != p.there || latest.began > 0 {
			return fmt.Errorf("result put by hand is %q, %v after %d runs; want it as it was", text, err, latest.began)
		}
	case fetched:
		return judgeFetched(p, r)
	case run:
		return judgeRun(p, r, latest)
	}
	return nil
}

// judgeFollower: a request with the idempotency key of an earlier one never runs, and has the
// result of that one (CLUTCH-52).
func (s *site) judgeFollower(p promise, r envelope.Result, latest execution) error {
	first, err := s.read(p.key)
	switch {
	case err != nil:
		return fmt.Errorf("the task %s with its key has no result: %w", p.key, err)
	case latest.began > 0:
		return fmt.Errorf("it ran %d times, and %s has its key", latest.began, p.key)
	case r.Status != first.Status || r.Error != first.Error || r.Output.Summary != first.Output.Summary:
		return fmt.Errorf("%s, %v, %q; want the outcome of %s: %s, %v, %q", r.Status, r.Error, r.Output.Summary, p.key, first.Status, first.Error, first.Output.Summary)
	}
	return nil
}

// judgeRun: an ok result is the word of the latest version, an error is one
// that the agent deserves or that a killed daemon explains.
func judgeRun(p promise, r envelope.Result, latest execution) error {
	want := fmt.Sprintf("%s v%d", p.id, p.version)
	switch {
	case r.Status == envelope.OK && isSandboxed(p.part) && r.Output.Enforcement[envelope.ControlFilesystem] != envelope.LevelKernel:
		return fmt.Errorf("ok in a sandbox, and the result claims %v; want kernel", r.Output.Enforcement)
	case r.Status == envelope.OK && r.Output.Summary == want && latest.began > 0:
		return nil
	case r.Status == envelope.Failed && r.Error.Kind == envelope.RunLost:
		return nil
	case r.Error.Kind == envelope.ApprovalDenied && p.asks != "" && (r.Status == envelope.Rejected && latest.began == 0 || r.Status == envelope.Failed && p.asks != "pre"):
		return nil
	case r.Status == envelope.Failed && r.Error.Kind == envelope.AgentCrashed && (p.part == "crash" || p.part == "again"):
		return nil
	}
	return fmt.Errorf("%s, %s %q, %q after %d runs; want the answer %q", r.Status, r.Error.Kind, r.Error.Message, r.Output.Summary, latest.began, want)
}

// explains reports whether a result is that of a task whose bubblewrap was killed.
func (b *book) explains(p promise, r envelope.Result, runs map[key]execution) bool {
	switch {
	case !b.wrapped[p.id] || p.fate != run:
		return false
	case r.Error.Kind == envelope.SandboxUnavailable:
		return r.Status == envelope.Rejected && runs[key{p.id, p.version}].began == 0
	}
	return r.Status == envelope.Failed && r.Error.Kind == envelope.AgentCrashed
}

// checkDiary looks for what was executed twice.
func (s *site) checkDiary(t *testing.T) {
	t.Helper()
	runs, err := s.diary()
	if err != nil {
		t.Fatal(err)
	}
	for key, e := range runs {
		if err := e.judge(); err != nil {
			t.Errorf("%s v%d: %v", key.id, key.version, err)
		}
	}
}

// describe says what a process is.
func describe(pid int) string {
	dir := fmt.Sprintf("/proc/%d/", pid)
	command, _ := os.ReadFile(dir + "cmdline")
	environ, _ := os.ReadFile(dir + "environ")
	stat, _ := os.ReadFile(dir + "stat")
	_, run, _ := strings.Cut(string(environ), "MAILBOX_RUN_DIR=")
	run, _, _ = strings.Cut(run, "\x00")
	return fmt.Sprintf("%q of %s, stat %.60s", strings.ReplaceAll(string(command), "\x00", " "), run, stat)
}

func (s *site) checkLetters(t *testing.T, b *book) {
	t.Helper()
	text, err := concatenate(s.path("box/rejected/*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range b.letters {
		if !strings.Contains(text, word) {
			t.Errorf("line %q is not in rejected/", word)
		}
	}
}

// checkCallbacks looks for each result in the queue that was asked for.
func (s *site) checkCallbacks(t *testing.T, b *book) {
	t.Helper()
	text, err := concatenate(s.path("box/queues/*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range b.promises {
		if p.callback != "" && !strings.Contains(text, fmt.Sprintf(`"task_id":%q`, p.id)) {
			t.Errorf("task %s: its result is not in the queue it asked for", p.id)
		}
	}
}

func concatenate(pattern string) (string, error) {
	paths, err := filepath.Glob(pattern)
	var all strings.Builder
	for _, path := range paths {
		text, readErr := os.ReadFile(path)
		err = errors.Join(err, readErr)
		all.Write(text)
	}
	return all.String(), err
}

// report prints the figures, and fails for a point that a long torture left out.
func (s *site) report(t *testing.T, b *book, sum tally) {
	t.Helper()
	took := time.Since(sum.began)
	runs, err := s.diary()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	began, lost, void := 0, 0, 0
	for _, e := range runs {
		began += e.began
	}
	for _, p := range b.promises {
		if r, err := s.read(p.id); err == nil && r.Error.Kind == envelope.RunLost {
			lost++
			if runs[key{p.id, p.version}].began == 0 {
				void++
			}
		}
	}
	t.Logf("seed %d: %d SIGKILLs and %d of the keeper, %d lives, %d tasks, %d dead letters, %.0f s, %.1f tasks/s, largest daemon %d KiB",
		*seed, sum.kills, sum.keepers, sum.lives, len(b.promises), len(b.letters), took.Seconds(), float64(len(b.promises))/took.Seconds(), sum.peak)
	t.Logf("%d SIGKILLs of bubblewrap, and %d of gates", b.wraps, b.gates)
	t.Logf("%d executions; %d tasks ended as run_lost, %d of them before their agent had done anything", began, lost, void)
	s.reportPoints(t, sum)
}

func (s *site) reportPoints(t *testing.T, sum tally) {
	t.Helper()
	points, err := faultPoints()
	if err != nil {
		t.Fatal(err)
	}
	crossings, err := s.crossings()
	if err != nil {
		t.Fatal(err)
	}
	const often = 100 // crossings, after which one must have died at a point
	const enough = 20 // rounds over all points, after which each must have been met; not where state is damaged: tasks are held then
	for _, p := range points {
		if slices.Contains(exports, p.name) {
			continue // TestAnExportThatIsKilledLeavesNoHalfFile
		}
		c, name := crossings[p.name], p.name
		t.Logf("%-20s crossed %6d times, died there %3d times", name, c.crossed, c.died)
		spared := slices.Contains(beginnings, name)
		if s.damage == nil && !spared && sum.kills > enough*len(points) && (c.crossed == 0 || c.died == 0 && c.crossed >= often) {
			t.Errorf("fault point %s was crossed %d times and died at %d times; want both", name, c.crossed, c.died)
		}
	}
}
