package runnerdaemon

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/running/carrier"
	"mailboxd/internal/running/runner"
)

// records writes to the journal of a runner that doesn't serve, and makes the directory of a run.
func (r *stubRunner) records(all ...record) {
	r.t.Helper()
	j, err := openJournal(r.state("journal.db"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, one := range all {
		if err := j.put(one); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := j.close(); err != nil {
		r.t.Fatal(err)
	}
	if err := os.MkdirAll(r.state("runs", "run-9"), 0o700); err != nil {
		r.t.Fatal(err)
	}
}

func TestAProgramThatEndsBeforeARunBeganHasNotLostItsJournal(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, echo)
	r.start()
	o.await("a report", func() bool { return o.report.Incarnation != "" })
	before := o.incarnation()
	r.stop()
	old, commits := time.Now().Add(-2*commitsKept), r.state("repositories", "x.git")
	if err := os.MkdirAll(commits, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(commits, old, old); err != nil {
		t.Fatal(err)
	}
	token := fleet.NewToken(1, 9, 1, 1, "r9")
	r.records(record{Token: token, State: fleet.Offered})
	r.start()
	o.awaitVoid(token)
	if o.incarnation() != before {
		t.Error("the journal has another incarnation")
	}
	for _, path := range []string{r.state("runs", "run-9"), commits} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is left (%v)", path, err)
		}
	}
}

func TestARunWhoseJobCannotBeReadIsLost(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, echo)
	r.start()
	o.await("a report", func() bool { return o.report.Incarnation != "" })
	r.stop()
	token := fleet.NewToken(1, 9, 1, 1, "r9")
	text, err := fleet.EncodeLarge(fleet.Job{Token: token, Agent: "echo", Work: []byte(`{"run_id":7}`)})
	if err != nil {
		t.Fatal(err)
	}
	r.records(record{Token: token, State: fleet.Began, Job: text, RunID: "run-9"})
	r.start()
	if said, _ := o.outcome(token); said.Result.Error.Kind != envelope.RunLost {
		t.Errorf("result = %+v", said.Result)
	}
}

func TestARunWhoseFilesMayBeLostIsNotBegunAgain(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, echo)
	r.start()
	o.await("a report", func() bool { return o.report.Incarnation != "" })
	r.stop()
	boots := map[fleet.Token]string{}
	for i, boot := range []string{"same", runner.Boot(), "another boot", ""} {
		run := fmt.Sprintf("run-%d", 90+i)
		w := fleet.Work{Task: envelope.Task{ID: envelope.ID(run), Agent: "echo"}, Revision: 1, Attempt: 1, RunID: run}
		work, err := fleet.EncodeLarge(w)
		if err != nil {
			t.Fatal(err)
		}
		token := fleet.NewToken(1, int64(90+i), 1, 1, "r9")
		job, err := fleet.EncodeLarge(fleet.Job{Token: token, Agent: "echo", Work: work})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(r.state("runs", run), 0o700); err != nil {
			t.Fatal(err)
		}
		boots[token] = boot
		if boot == "same" {
			boot = runner.Evidence(r.state("runs", run))
		}
		r.records(record{Token: token, State: fleet.Began, Job: job, RunID: run, Boot: boot})
	}
	if err := os.Remove(r.state("runs", "run-9")); err != nil {
		t.Fatal(err)
	}
	r.start()
	for token, boot := range boots {
		said, _ := o.outcome(token)
		if void := said.Void != ""; void != (boot == "same") || !void && said.Result.Error.Kind != envelope.RunLost {
			t.Errorf("boot %q: void %q, result %+v; a directory that was not synced shows nothing", boot, said.Void, said.Result)
		}
	}
}

func TestANoteMayBeAnsweredAfterTheProgramOfItsRunnerEnds(t *testing.T) {
	n := &notes{queue: []fleet.Note{{}}, closed: make(chan struct{})}
	n.close(true)
	n.answered(fleet.NoteReply{Stop: "over"})
	if len(n.queue) != 0 || n.stop != "over" {
		t.Errorf("left %v, stop %q", n.queue, n.stop)
	}
}

func TestFilesThatTheHubLostAreSentAgain(t *testing.T) {
	o := newOwner(t)
	o.missing = true
	newRunner(t, o, echo).start()
	token := o.give("echo", nil)
	_, first := o.outcome(token)
	o.await("the outcome once more", func() bool { return o.outcomes > 1 && !o.lost })
	_, again := o.outcome(token)
	if len(first) != 1 || len(again) != 1 || again[0] != first[0] {
		t.Fatalf("sent %+v, and then %+v; want the same object, which takes the place of the first one", first, again)
	}
	var log bytes.Buffer
	if err := o.link.Get(t.Context(), "r1", again[0], &log); err != nil || log.String() != "hello from the runner\n" {
		t.Errorf("the log is %q, %v", log.String(), err)
	}
}

func TestARunnerOfSSHEndsWithoutTheHub(t *testing.T) {
	r := newRunner(t, &stubOwner{url: "nats://127.0.0.1:1"}, echo)
	cfg, err := config.LoadRunner(r.file)
	if err != nil {
		t.Fatal(err)
	}
	err = Serve(t.Context(), Options{
		Config: cfg, URL: r.url, Version: "test", Credentials: carrier.Credentials{Root: "main"}, Keeper: []string{"runner-test", "keeper"},
		Log: zerolog.Nop(), Without: time.Nanosecond,
	})
	if err == nil || !strings.Contains(err.Error(), "the hub was not there for 1ns") {
		t.Errorf("the runner ended with %v; want that the hub was not there", err)
	}
}

func TestASettledTokenIsForgottenOnceTheJournalCanBeWritten(t *testing.T) {
	o := newOwner(t)
	o.refuse = true
	r := newRunner(t, o, echo)
	r.start()
	token := o.give("echo", nil)
	o.awaitState(token, fleet.Ended)
	db, err := sql.Open("sqlite", "file:"+r.state("journal.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TRIGGER full BEFORE DELETE ON tokens BEGIN SELECT RAISE(FAIL, 'disk full'); END"); err != nil {
		t.Fatal(err)
	}
	o.mu.Lock()
	o.refuse = false
	o.mu.Unlock()
	o.outcome(token)
	o.await("no run", func() bool { return len(o.report.Runs) == 0 })
	time.Sleep(300 * time.Millisecond) // the first write
	if _, err := db.Exec("DROP TRIGGER full"); err != nil {
		t.Fatal(err)
	}
	o.await("an empty journal", func() bool {
		left := 1
		err := db.QueryRow("SELECT count(*) FROM tokens").Scan(&left)
		return err == nil && left == 0
	})
}

func TestARunnerThatTheHubWouldNotKnowIsRefused(t *testing.T) {
	r := newRunner(t, &stubOwner{url: "nats://127.0.0.1:1"}, echo)
	cfg, err := config.LoadRunner(r.file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, own, want string }{
		{"r1", "r2", "the credentials are those of runner r2, not of r1"},
		{"", "", "the runner has no name: set --credentials"},
	} {
		cfg.Name = c.name
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		err := Serve(ctx, Options{
			Config: cfg, URL: r.url, Version: "test", Credentials: carrier.Credentials{Root: "main", Runner: c.own},
			Keeper: []string{"runner-test", "keeper"}, Log: zerolog.Nop(),
		})
		stop()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("name %q, credentials of %q: %v; want %q", c.name, c.own, err, c.want)
		}
	}
}

func TestARunnerWithAFreeSlotRenewsTheLeasesOfItsRuns(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, `
agents:
  - id: long
    exec: {command: [sh, -c, 'sleep 100'], output: text}
`)
	r.start()
	token := o.give("long", nil)
	o.await("a beat with the run, besides claims", func() bool {
		return len(o.beat.Runs) == 1 && o.beat.Runs[0].Token == token
	})
}
