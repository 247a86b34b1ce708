package runners_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"mailboxd/internal/testtools/slowtest"
)

// names returns the names of n tasks.
func names(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", prefix, i))
	}
	return all
}

func TestEachRunOfAnOwnerThatWasKilledEndsOnce(t *testing.T) {
	s := newSite(t)
	s.serve()
	before, after := names("before", 10), names("after", 10)
	s.send("worker", append(before, after...)...)
	s.owner.kill()
	s.release(before...)
	s.await("answers while the owner is away", func() bool { return len(s.lines("ended")) == len(before) })
	s.startOwner()
	s.release(after...)
	s.wantAnswers(append(before, after...)...)
}

func TestWhatARunnerThatRestartedHadBegunIsLostOrBeginsAgain(t *testing.T) {
	s := newSite(t)
	s.serve()
	s.send("worker", "once")
	s.send("again", "repeated")
	s.crash(gpu)
	<-s.runner.gone
	s.boot = "another"
	s.release("once", "repeated")
	s.startRunner()
	s.await("results", func() bool { return s.result("once").Status != "" && s.result("repeated").Status != "" })
	if r := s.result("once"); r.Status != "error" || !strings.Contains(r.Text, "run_lost") {
		t.Errorf("the result of a run that had begun is %s; want run_lost", r.Text)
	}
	if r := s.result("repeated"); r.Status != "ok" {
		t.Errorf("the result of an idempotent agent is %s; want an answer", r.Text)
	}
	if got := strings.Join(s.lines("begun"), " "); got != "once repeated repeated" {
		t.Errorf("begun were %s; want the run of the idempotent agent twice, and the other one once", got)
	}
}

func TestALateAnswerIsKeptForReviewAndChangesNoResult(t *testing.T) {
	t.Run("after a person gave the run up", func(t *testing.T) {
		s := newSite(t)
		s.answerLate(func() { s.mailboxd("cancel", "--abandon", "t1") })
	})
	t.Run("after the runner was unreachable", func(t *testing.T) {
		slowtest.Require(t, "it waits for half a minute, the least that remote.unreachable can be")
		s := newSite(t, func(s *site) { s.unreachable = "30s" })
		s.answerLate(func() {})
	})
}

// answerLate has a run end after its owner gave it up, and looks at what became of its answer.
func (s *site) answerLate(giveUp func()) {
	t := s.t
	s.serve()
	s.send("worker", "t1")
	s.runner.kill() // its keeper and the run stay
	giveUp()
	s.await("a result of a run without an answer", func() bool { return s.result("t1").Status != "" })
	if r := s.result("t1"); !strings.Contains(r.Text, "run_lost") {
		t.Errorf("the result is %s; want run_lost", r.Text)
	}
	before := s.files("box/results")
	s.release("t1")
	s.await("the end of the run", func() bool { return len(s.lines("ended")) == 1 })
	s.startRunner()
	var late []string
	s.await("an event about the late answer", func() bool { late = s.events("run.fenced")["t1"]; return len(late) > 0 })
	s.send("worker", "t2") // the runner is free again
	if after := s.files("box/results"); !maps.Equal(before, after) {
		t.Errorf("the results were %v, and are %v", before, after)
	}
	var event struct{ File, Status, Message string }
	s.must(json.Unmarshal([]byte(late[0]), &event, json.MatchCaseInsensitiveNames(true)))
	if len(late) != 1 || event.Status != "ok" || event.Message != "the answer of t1" {
		t.Errorf("the events are %s; want one with the answer", late)
	}
	file := filepath.Join(s.stateDir(), event.File)
	for name, want := range map[string]string{file: "the answer of t1", filepath.Join(filepath.Dir(file), "stdout"): "the answer of t1\n"} {
		if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has %q, %v; want %q", name, text, err, want)
		}
	}
	shown := s.mailboxd("show", "t1")
	if !strings.Contains(shown, "a late answer was kept for review") || !strings.Contains(shown, "the answer of t1") {
		t.Errorf("mailboxd show prints:\n%s\nwant the late answer", shown)
	}
}

// stateDir is the state directory of the owner's mailbox.
func (s *site) stateDir() string {
	s.t.Helper()
	found, err := filepath.Glob(s.path("local/state/*/ledger.db"))
	if s.must(err); len(found) == 1 {
		return filepath.Dir(found[0])
	}
	return s.path("local/state")
}

// files returns the contents of the files of a directory.
func (s *site) files(dir string) map[string]string {
	s.t.Helper()
	entries, err := os.ReadDir(s.path(dir))
	s.must(err)
	all := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(s.path(dir), e.Name()))
		s.must(err)
		all[e.Name()] = string(text)
	}
	return all
}

func TestNothingButLiveOutputIsLostWithTheDiskOfTheHub(t *testing.T) {
	s := newSite(t)
	s.serve()
	ids := names("t", 4)
	s.send("worker", ids...)
	s.hub.end(unix.SIGTERM)
	s.must(os.RemoveAll(s.path("hub/jetstream")))
	s.release(ids[:2]...)
	s.await("answers while the hub is away", func() bool { return len(s.lines("ended")) == 2 })
	s.startHub()
	s.release(ids[2:]...)
	s.wantAnswers(ids...)
	s.release("next")
	s.send("worker", "next")
	s.wantAnswers("next")
}
