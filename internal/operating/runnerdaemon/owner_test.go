package runnerdaemon

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/running/carrier"
	"mailboxd/internal/running/runner"
)

// A stubOwner gives jobs to a runner, and settles what it is told.
type stubOwner struct {
	t    *testing.T
	url  string
	link *carrier.Owner

	store string // of the hub

	mu        sync.Mutex
	announced fleet.Announcement
	session   string // of the runner now
	report    fleet.Report
	beat      fleet.Beat
	jobs      []fleet.Job
	pending   func()
	lease     time.Duration
	patience  time.Duration // how long a claim without a job is pending
	silent    bool          // it answers no report
	refuse    bool          // it settles nothing
	missing   bool          // the hub loses the files of the next outcome
	lost      bool          // it lost them, and does not have all of them again
	void      []fleet.Token
	keep      bool // tombstones are not settled
	cancel    []fleet.Token
	settled   []fleet.Token
	notes     []fleet.Note
	stop      string
	done      map[fleet.Token]fleet.Done
	outcomes  int // that came
	tokens    int64
	changed   chan struct{}
}

// newOwner starts a hub and an owner of the runner r1.
func newOwner(t *testing.T) *stubOwner {
	t.Helper()
	store := t.TempDir()
	hub, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: store, NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	hub.Start()
	t.Cleanup(func() { hub.Shutdown(); hub.WaitForShutdown() })
	if !hub.ReadyForConnections(10 * time.Second) {
		t.Fatal("the hub is not ready")
	}
	o := &stubOwner{
		t: t, url: hub.ClientURL(), store: store, lease: time.Minute, patience: 200 * time.Millisecond,
		done: map[fleet.Token]fleet.Done{}, changed: make(chan struct{}, 1),
	}
	o.link, err = carrier.DialOwner(t.Context(), carrier.OwnerOptions{
		Options: carrier.Options{URL: o.url, Root: "main"},
		Hello: func(m fleet.Hello, answer func(fleet.Reply)) {
			o.mu.Lock()
			o.announced, o.session = m.Announcement, m.Session
			o.mu.Unlock()
			o.answer(m.Report, answer, "")
		},
		Beat: func(m fleet.Beat, answer func(fleet.Reply)) {
			o.mu.Lock()
			o.beat = m
			o.mu.Unlock()
			o.answer(m.Report, answer, "")
		},
		Claim: o.claim, Note: o.note, Done: o.take,
		Closed: func(_, reason string) { t.Error("the link was closed:", reason) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.link.Close)
	if err := o.link.Ensure(t.Context(), "r1"); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *stubOwner) moved() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

func (o *stubOwner) answer(r fleet.Report, answer func(fleet.Reply), claim string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.report = r
	defer o.moved()
	if o.silent {
		return
	}
	reply := fleet.Reply{
		Protocol: fleet.Protocol, Epoch: 1, Number: r.Number, Session: r.Session,
		Lease: o.lease, Void: o.void, Cancel: o.cancel, Claim: claim,
	}
	if !o.keep {
		reply.Settled = r.Voided
	}
	for _, one := range r.Runs {
		reply.Renew = append(reply.Renew, one.Token)
	}
	if claim != "" && r.Session == o.session {
		reply.Jobs, o.jobs = o.jobs, nil
	}
	o.settled = append(o.settled, r.Voided...)
	answer(reply)
}

// claim answers when there is a job, or after a while.
func (o *stubOwner) claim(m fleet.Claim, answer func(fleet.Reply)) {
	var once sync.Once
	now := func() { once.Do(func() { o.answer(m.Report, answer, m.ID) }) }
	o.mu.Lock()
	o.report, o.pending = m.Report, now
	waits := len(o.jobs) == 0
	o.mu.Unlock()
	o.moved()
	if !waits {
		now()
		return
	}
	time.AfterFunc(o.patience, now)
}

func (o *stubOwner) note(m fleet.Note, answer func(fleet.NoteReply)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notes = append(o.notes, m)
	answer(fleet.NoteReply{Token: m.Token, Number: m.Number, Stop: o.stop})
}

func (o *stubOwner) take(m fleet.Done, answer func(fleet.DoneReply)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.moved()
	if o.refuse {
		answer(fleet.DoneReply{Epoch: 1, Token: m.Token, Later: true})
		return
	}
	o.done[m.Token] = m
	o.outcomes++
	if o.missing {
		o.missing, o.lost = false, true
		for _, object := range m.Objects {
			if err := o.link.Forget(o.t.Context(), "r1", object.Key); err != nil {
				o.t.Error(err)
			}
		}
	}
	if o.lost {
		o.lost = slices.ContainsFunc(m.Objects, func(object fleet.Object) bool {
			return o.link.Get(o.t.Context(), "r1", object, io.Discard) != nil
		})
	}
	if o.lost {
		answer(fleet.DoneReply{Epoch: 1, Token: m.Token, Later: true, Missing: true})
		return
	}
	answer(fleet.DoneReply{Epoch: 1, Token: m.Token, Settled: true})
}

// give has the runner do a task, and returns its token.
func (o *stubOwner) give(agent string, change func(*fleet.Job, *fleet.Work)) fleet.Token {
	o.t.Helper()
	o.await("an announcement of "+agent, func() bool { return o.digest(agent) != "" })
	o.mu.Lock()
	o.tokens++
	n := o.tokens
	raw := fmt.Appendf(nil, `{"task_id":"t%d","requester_id":"me","target_agent":%q,"target_role":"doer",`+
		`"task_type":"x","description":"d","input":{}}`, n, agent)
	t, _ := envelope.DecodeTask(raw, envelope.Legacy)
	w := fleet.Work{Request: raw, Task: t, Revision: 1, Attempt: 1, RunID: fmt.Sprintf("run-%d", n)}
	j := fleet.Job{Token: fleet.NewToken(1, n, 1, 1, fmt.Sprintf("r%d", n)), Agent: agent, Digest: o.digest(agent)}
	if change != nil {
		change(&j, &w)
	}
	text, err := fleet.EncodeLarge(w)
	if err != nil {
		o.t.Fatal(err)
	}
	j.Work = text
	o.jobs = append(o.jobs, j)
	pending := o.pending
	o.mu.Unlock()
	if pending != nil {
		pending()
	}
	return j.Token
}

// digest returns the digest of an agent in the announcement. The caller holds mu, or asks in await.
func (o *stubOwner) digest(agent string) string {
	for _, a := range o.announced.Agents {
		if a.ID == agent {
			return a.Digest
		}
	}
	return ""
}

// await waits until something holds.
func (o *stubOwner) await(what string, holds func() bool) {
	o.t.Helper()
	over, again := time.After(30*time.Second), time.NewTicker(100*time.Millisecond)
	defer again.Stop()
	for {
		o.mu.Lock()
		ok := holds()
		o.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-o.changed:
		case <-again.C:
			if err := o.link.Order("r1", fleet.Order{Epoch: 1, Wake: true}); err != nil {
				o.t.Fatal(err)
			}
		case <-over:
			o.t.Fatalf("there was not %s", what)
		}
	}
}

// outcome waits for the outcome of a token.
func (o *stubOwner) outcome(token fleet.Token) (said fleet.Outcome, objects []fleet.Object) {
	o.t.Helper()
	var m fleet.Done
	o.await("an outcome of "+string(token), func() bool { var ok bool; m, ok = o.done[token]; return ok })
	if err := fleet.DecodeLarge(m.Outcome, &said); err != nil {
		o.t.Fatal(err)
	}
	return said, m.Objects
}

// awaitState waits until the runner reports a token in a state.
func (o *stubOwner) awaitState(token fleet.Token, state fleet.RunState) {
	o.t.Helper()
	o.await(fmt.Sprintf("token %s %s", token, state), func() bool {
		for _, r := range o.report.Runs {
			if r.Token == token && r.State == state {
				return true
			}
		}
		return false
	})
}

// incarnation returns that of the journal of the last report.
func (o *stubOwner) incarnation() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.report.Incarnation
}

// awaitVoid waits until a token is voided.
func (o *stubOwner) awaitVoid(token fleet.Token) {
	o.t.Helper()
	o.await("a tombstone of "+string(token), func() bool {
		for _, t := range o.settled {
			if t == token {
				return true
			}
		}
		return false
	})
}

// A stubRunner is a runner's configuration, and the program that serves it.
type stubRunner struct {
	t    *testing.T
	url  string
	file string
	stop func()
}

// newRunner writes runner.yaml.
func newRunner(t *testing.T, o *stubOwner, agents string) *stubRunner {
	t.Helper()
	dir := t.TempDir()
	r := &stubRunner{t: t, url: o.url, file: filepath.Join(dir, "runner.yaml")}
	r.write(fmt.Sprintf("name: r1\nstate: %s/state\nworktrees_dir: %s/worktrees\nmin_free_bytes: 0\n%s", dir, dir, agents))
	t.Cleanup(func() {
		if r.stop != nil {
			r.stop()
		}
		r.endRuns()
	})
	return r
}

// endRuns ends the runs that a runner's program left, and so their keeper.
func (r *stubRunner) endRuns() {
	dirs, _ := filepath.Glob(r.state("runs", "*"))
	for _, dir := range dirs {
		_, _ = runner.Sweep(dir, 0) // a run that never began has no record
	}
}

func (r *stubRunner) write(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *stubRunner) state(path ...string) string {
	return filepath.Join(append([]string{filepath.Dir(r.file), "state"}, path...)...)
}

// start serves until stop, which leaves the runs.
func (r *stubRunner) start() {
	r.t.Helper()
	cfg, err := config.LoadRunner(r.file)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		err := Serve(ctx, Options{
			Config: cfg, URL: r.url, Credentials: carrier.Credentials{Root: "main"}, Version: "test", Keeper: []string{"runner-test", "keeper"},
			Log: zerolog.New(zerolog.NewTestWriter(r.t)),
		})
		if err != nil {
			r.t.Error("runner:", err)
		}
	})
	r.stop = func() { stop(); serving.Wait(); r.stop = nil }
}
