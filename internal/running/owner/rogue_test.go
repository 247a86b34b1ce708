package owner_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/running/carrier"
	process "mailboxd/internal/running/runner"
)

// A rogue has the key of runner cpu-1, which runs nothing, and sends what it likes.
type rogue struct {
	t      *testing.T
	link   *carrier.Runner
	conn   *nats.Conn
	report fleet.Report
}

func startRogue(t *testing.T, url string) *rogue {
	t.Helper()
	link, err := carrier.DialRunner(carrier.RunnerOptions{Options: carrier.Options{URL: url, Root: "team"}, Name: "cpu-1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	conn, err := nats.Connect(url, nats.CustomInboxPrefix("_INBOX.team.cpu-1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	r := &rogue{t: t, link: link, conn: conn}
	r.report = fleet.Report{Protocol: fleet.Protocol, Runner: "cpu-1", Incarnation: "inc2", Session: "ses2", Journal: 1}
	for {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		_, err := link.Hello(ctx, fleet.Hello{Report: r.next()})
		stop()
		if err == nil {
			return r
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

func (r *rogue) next() fleet.Report {
	r.report.Number++
	r.report.Time = time.Now()
	return r.report
}

func (r *rogue) done(token fleet.Token) fleet.DoneReply {
	r.t.Helper()
	reply, _, err := r.link.Done(r.t.Context(), fleet.Done{Report: r.next(), Token: token, Outcome: []byte(`{"result":{"Status":"ok"}}`)})
	if err != nil {
		r.t.Fatal(err)
	}
	return reply
}

func TestARogueRunnerChangesNoRunOfAnother(t *testing.T) {
	m, s := start(t)
	j, outcome, job := m.begin(t, s, jobFor(t))
	s.lists([]fleet.RunReport{{Token: job.Token, State: fleet.Began}})
	r := startRogue(t, m.url)
	if reply := r.done(job.Token); reply.Refused == "" || reply.Settled || reply.Fenced != "" {
		t.Errorf("the outcome of another runner got %+v", reply)
	}
	r.report.Runs = []fleet.RunReport{{Token: job.Token, State: fleet.Ended}}
	if reply, err := r.link.Beat(t.Context(), fleet.Beat{Report: r.next()}); err != nil || len(reply.Renew)+len(reply.Settled) > 0 {
		t.Errorf("a beat with the token of another got %+v, %v", reply, err)
	}
	r.report.Runs, r.report.Voided = nil, []fleet.Token{job.Token}
	if reply, err := r.link.Beat(t.Context(), fleet.Beat{Report: r.next()}); err != nil || len(reply.Settled) > 0 {
		t.Errorf("a tombstone for the token of another got %+v, %v", reply, err)
	}
	note := fleet.Note{Runner: "cpu-1", Incarnation: "inc2", Token: job.Token, Number: 1, Ask: &fleet.AskNote{}}
	if reply, err := r.link.Note(t.Context(), note); err != nil || reply.Refused == "" {
		t.Errorf("a note for the token of another got %+v, %v", reply, err)
	}
	background(t, func() { s.done(job.Token, "mine") })
	if got := await(t, "the outcome", outcome); got.Result.Output.Summary != "mine" {
		t.Errorf("the outcome is %+v; want that of the runner that has the run", got.Result)
	}
	m.end(job.Token, fleet.PastClosed)
	m.Settled(j.At)
	if reply := r.done(job.Token); reply.Refused == "" {
		t.Errorf("an outcome for the ended run of another got %+v", reply)
	}
	if reply := r.done("1-7-1-1-guessed"); reply.Refused == "" {
		t.Errorf("an outcome with a guessed token got %+v", reply)
	}
	if len(m.fenced)+len(m.closed) > 0 {
		t.Errorf("%d answers were kept and %d links closed", len(m.fenced), len(m.closed))
	}
}

func TestARunnerChangesNoFileBesidesThoseOfItsRun(t *testing.T) {
	m, s := start(t)
	j := jobFor(t)
	outside := filepath.Join(filepath.Dir(j.Dir), "outside")
	if err := os.MkdirAll(j.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(j.Dir), filepath.Join(j.Dir, "up")); err != nil {
		t.Fatal(err)
	}
	j, outcome, job := m.begin(t, s, j)
	put := func(key, name string) fleet.Object {
		o, err := s.link.Put(t.Context(), fleet.ObjectArtifact, key, name, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	own, through := put("k1", "bundle.json"), put("k2", "up/outside")
	text := []byte(`{"result":{"Status":"ok"}}`)
	reply, _, err := s.link.Done(t.Context(), fleet.Done{
		Report: s.next(), Token: job.Token, Outcome: text, Objects: []fleet.Object{own, through},
	})
	if err != nil || !reply.Later {
		t.Errorf("an outcome with a file outside of its directory got %+v, %v", reply, err)
	}
	for _, file := range []string{outside, filepath.Join(j.Dir, "bundle.json"), filepath.Join(j.Dir, process.StdoutFile)} {
		if _, err := os.Lstat(file); err == nil {
			t.Errorf("the runner wrote %s", file)
		}
	}
	background(t, func() { s.done(job.Token, "sound") })
	await(t, "the outcome", outcome)
	m.end(job.Token, fleet.PastSettled)
	m.Settled(j.At)
}

func TestAnOutcomeThatNoRunCanHaveClosesTheLinkOnce(t *testing.T) {
	for name, text := range map[string]string{
		"a status of its own":   `{"result":{"Status":"approved"}}`,
		"a hold of a person":    `{"result":{"Status":"ok"},"hold":"approval"}`,
		"a cost below zero":     `{"result":{"Status":"ok","Cost":{"Tokens":-5}}}`,
		"a member of two types": `{"result":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			m, s := start(t)
			j, outcome, job := m.begin(t, s, jobFor(t))
			background(t, func() {
				ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
				defer stop()
				_, _, _ = s.link.Done(ctx, fleet.Done{Report: s.next(), Token: job.Token, Outcome: []byte(text)})
			})
			if why := await(t, "the event", m.closed); !strings.Contains(why, "malformed") {
				t.Errorf("the link is closed because %q", why)
			}
			if got := await(t, "the outcome", outcome); got.Result.Error.Kind != "run_lost" {
				t.Errorf("the outcome is %+v; want a lost run", got.Result)
			}
			m.end(job.Token, fleet.PastClosed)
			m.Settled(j.At)
			if len(m.closed) > 0 {
				t.Error("the link has two events")
			}
		})
	}
}

func TestANoteCanNotWriteAnyEvent(t *testing.T) {
	n := fleet.Note{Runner: "gpu-1", Incarnation: "i", Token: "1-7-1-1-x", Number: 1, Used: &fleet.UsedNote{Kind: "task.approved"}}
	if err := n.Check(); err == nil {
		t.Error("a note may say that a task is approved")
	}
}

// flood sends a message many times, and waits until the owner has received all.
func (r *rogue) flood(subject string, message any) {
	r.t.Helper()
	text, err := fleet.Encode(message)
	if err != nil {
		r.t.Fatal(err)
	}
	for range 500 {
		m := &nats.Msg{Subject: subject, Reply: "_INBOX.team.cpu-1.x", Header: nats.Header{"Mbx-Runner": {"cpu-1"}}, Data: text}
		if err := r.conn.PublishMsg(m); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := r.conn.Flush(); err != nil {
		r.t.Fatal(err)
	}
	last := fleet.Note{Runner: "cpu-1", Incarnation: "inc2", Token: "1-1-1-1-x", Number: 1, Cost: &envelope.Cost{}}
	if _, err := r.link.Note(r.t.Context(), last); err != nil {
		r.t.Fatal(err)
	}
}

func TestMessagesOfARogueRunnerDoNotPileUp(t *testing.T) {
	m := startOwner(t, startHub(t), t.TempDir())
	r := startRogue(t, m.url)
	r.report.Journal++
	offers := fleet.Announcement{Version: "v1", Slots: 4, Agents: []fleet.Agent{{ID: "trainer", Digest: digest, MaxSensitivity: "internal"}}}
	if _, err := r.link.Hello(t.Context(), fleet.Hello{Report: r.next(), Announcement: offers}); err != nil {
		t.Fatal(err)
	}
	jobs := make(chan fleet.Job, 1)
	background(t, func() {
		reply, err := r.link.Claim(t.Context(), fleet.Claim{Report: r.next(), ID: "c", Free: 1, By: map[string]int{"trainer": 1}})
		if err != nil || len(reply.Jobs) != 1 {
			t.Errorf("the claim got %+v, %v", reply, err)
			return
		}
		jobs <- reply.Jobs[0]
	})
	j, slow := jobFor(t), make(chan struct{})
	j.Report = func(envelope.Message) { <-slow }
	j.Meter = func(envelope.Cost) error { <-slow; return nil }
	j = m.assign(t, 7, j)
	run, stop := context.WithCancelCause(t.Context())
	outcome := m.run(t, run, j)
	token := await(t, "a job", jobs).Token
	before := runtime.NumGoroutine()
	r.flood("mbx.team.note.cpu-1."+string(token), fleet.Note{
		Runner: "cpu-1", Incarnation: "inc2", Token: token, Number: 1, Report: &envelope.Message{},
	})
	for n := range 100 {
		r.report.Runs = []fleet.RunReport{{Token: token, State: fleet.Began, Cost: envelope.Cost{Tokens: int64(n)}}}
		if _, err := r.link.Beat(t.Context(), fleet.Beat{Report: r.next()}); err != nil {
			t.Fatal(err)
		}
	}
	if more := runtime.NumGoroutine() - before; more > 100 {
		t.Errorf("%d functions are at work for the messages of one runner", more)
	}
	close(slow)
	stop(process.ErrDetach)
	await(t, "the end of the wait", outcome)
}
