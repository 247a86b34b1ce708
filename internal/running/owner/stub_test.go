package owner_test

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/carrier"
	"mailboxd/internal/running/owner"
)

// startHub starts a hub for one test, and returns its address.
func startHub(t *testing.T) string {
	t.Helper()
	return startServer(t).ClientURL()
}

// startServer starts the server of a hub for one test.
func startServer(t *testing.T) *server.Server {
	t.Helper()
	hub, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	hub.Start()
	t.Cleanup(func() { hub.Shutdown(); hub.WaitForShutdown() })
	if !hub.ReadyForConnections(10 * time.Second) {
		t.Fatal("the hub doesn't accept connections")
	}
	return hub
}

// A mailboxOwner is an Owner with what it says to its engine.
type mailboxOwner struct {
	*owner.Owner
	stop   func()
	url    string
	dir    string
	places chan struct{}
	fenced chan task.LateAnswer
	closed chan string
	fits   chan []int64

	mu    sync.Mutex
	pasts map[fleet.Token]fleet.Past
}

// start starts an owner, and a runner that asks it for jobs.
func start(t *testing.T, change ...func(*owner.Options)) (*mailboxOwner, *stub) {
	t.Helper()
	url := startHub(t)
	m, s := startOwner(t, url, t.TempDir(), change...), startStub(t, url)
	s.start()
	return m, s
}

func startOwner(t *testing.T, url, dir string, change ...func(*owner.Options)) *mailboxOwner {
	t.Helper()
	m := &mailboxOwner{url: url, dir: dir, places: make(chan struct{}, 100), pasts: map[fleet.Token]fleet.Past{}}
	m.fenced, m.closed, m.fits = make(chan task.LateAnswer, 10), make(chan string, 10), make(chan []int64, 10)
	opts := owner.Options{
		Connect: carrier.Options{URL: url, Root: "team"}, Dir: dir,
		Suits:      func(agent, runner string, has []string) bool { return agent == "trainer" },
		Idempotent: func(string) bool { return false },
		Worktree:   func(string) bool { return false },
		Past: func(token fleet.Token, runner string) (fleet.Past, error) {
			if runner != "gpu-1" {
				return fleet.PastUnknown, nil
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.pasts[token], nil
		},
		Lost: func(j task.Job, why string) task.Outcome {
			return task.Outcome{Result: envelope.Result{Status: envelope.Failed, Error: envelope.Error{Kind: envelope.RunLost, Message: why}}}
		},
		Changed: func() {
			select {
			case m.places <- struct{}{}:
			default:
			}
		},
		Fits:    func(tasks []int64) { m.fits <- tasks },
		LateDir: func(token fleet.Token) (string, error) { return filepath.Join(dir, "runs", string(token), "late"), nil },
		Fenced: func(late task.LateAnswer) error {
			m.end(fleet.Token(late.At.Token), fleet.PastFenced)
			m.fenced <- late
			return nil
		},
		Closed: func(runner, reason string) { m.closed <- reason },
	}
	for _, do := range change {
		do(&opts)
	}
	var err error
	if m.Owner, err = owner.New(opts); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready := make(chan struct{})
	close(ready)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := m.Serve(ctx, ready); err != nil {
			t.Error(err)
		}
	})
	m.stop = sync.OnceFunc(func() { stop(); serving.Wait() })
	t.Cleanup(m.stop)
	return m
}

func (m *mailboxOwner) end(token fleet.Token, past fleet.Past) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pasts[token] = past
}

// assign waits for room at a runner, and assigns a run.
func (m *mailboxOwner) assign(t *testing.T, seq int64, j task.Job) task.Job {
	t.Helper()
	for {
		if grant := m.Take("trainer"); grant != nil {
			at, err := m.Assign(grant, seq, j)
			if err != nil {
				t.Fatal(err)
			}
			j.At = at
			return j
		}
		select {
		case <-m.places:
		case <-time.After(time.Minute):
			t.Fatal("no runner has asked for a job")
		}
	}
}

// A stub is a runner that does what its test says.
type stub struct {
	t       *testing.T
	link    *carrier.Runner
	mu      sync.Mutex
	report  fleet.Report
	jobs    chan fleet.Job
	orders  chan fleet.Order
	replies chan fleet.Reply
	most    string // the highest sensitivity that it takes
}

func startStub(t *testing.T, url string) *stub {
	t.Helper()
	s := &stub{
		t: t, most: "internal", jobs: make(chan fleet.Job, 100), orders: make(chan fleet.Order, 100), replies: make(chan fleet.Reply, 100),
		report: fleet.Report{Protocol: fleet.Protocol, Runner: "gpu-1", Incarnation: "inc1", Session: "ses1", Journal: 1},
	}
	var err error
	s.link, err = carrier.DialRunner(carrier.RunnerOptions{
		Options: carrier.Options{URL: url, Root: "team"}, Name: "gpu-1", Order: s.order,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.link.Close)
	return s
}

// next returns the next report of the stub.
func (s *stub) next() fleet.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Number++
	s.report.Time = time.Now()
	return s.report
}

func (s *stub) lists(runs []fleet.RunReport, voided ...fleet.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Runs, s.report.Voided = runs, voided
	s.report.Journal++
}

// hello announces the agent trainer, until the owner answers.
func (s *stub) hello(ctx context.Context) {
	s.mu.Lock()
	most := s.most
	s.mu.Unlock()
	for patience := 100 * time.Millisecond; ctx.Err() == nil; patience *= 2 { // the first one may be to an owner that ends
		short, stop := context.WithTimeout(ctx, patience)
		reply, err := s.link.Hello(short, fleet.Hello{Report: s.next(), Announcement: fleet.Announcement{
			Version: "v1", Slots: 4, Agents: []fleet.Agent{{ID: "trainer", Digest: digest, Concurrency: 4, MaxSensitivity: most}},
		}})
		stop()
		if err == nil && reply.Refused == "" {
			return
		}
		patience = min(patience, fleet.ClaimWait/2)
		if errors.Is(err, carrier.ErrNoResponders) {
			pause(ctx)
		}
	}
}

// pause waits for an owner that starts.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// serve asks for jobs until ctx ends.
func (s *stub) serve(ctx context.Context) {
	s.hello(ctx)
	for n := 1; ctx.Err() == nil; n++ {
		short, stop := context.WithTimeout(ctx, fleet.ClaimWait) // an owner that ends may not answer
		reply, err := s.link.Claim(short, fleet.Claim{Report: s.next(), ID: "claim" + strconv.Itoa(n), Free: 4, By: map[string]int{"trainer": 4}})
		stop()
		switch {
		case errors.Is(err, carrier.ErrNoResponders):
			pause(ctx) // the owner starts again
		case err != nil:
		case reply.Hello:
			s.hello(ctx)
		default:
			for _, j := range reply.Jobs {
				s.jobs <- j
			}
		}
	}
}

// start has the stub ask for jobs until the test ends.
func (s *stub) start() {
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { s.serve(ctx) })
	s.t.Cleanup(func() { stop(); serving.Wait() })
}

func (s *stub) job() fleet.Job {
	s.t.Helper()
	select {
	case j := <-s.jobs:
		return j
	case <-time.After(time.Minute):
		s.t.Fatal("no job has come")
		return fleet.Job{}
	}
}

// done sends an outcome until the owner decides about it.
func (s *stub) done(token fleet.Token, summary string, objects ...fleet.Object) fleet.DoneReply {
	s.t.Helper()
	return s.ends(token, answerOf(summary), objects...)
}

// answerOf is an outcome with a summary.
func answerOf(summary string) fleet.Outcome {
	return fleet.Outcome{
		Result: envelope.Result{TaskID: "other", AgentID: "other", Status: envelope.OK, Output: envelope.Output{Summary: summary}},
	}
}

// ends sends an outcome until the owner decides about it.
func (s *stub) ends(token fleet.Token, outcome fleet.Outcome, objects ...fleet.Object) fleet.DoneReply {
	s.t.Helper()
	for {
		if reply := s.sendOutcome(token, outcome, objects...); !reply.Later && reply.Token != "" {
			return reply
		}
		if s.t.Context().Err() != nil {
			s.t.Fatal("the owner has not answered an outcome")
		}
	}
}

// sendDone sends an outcome once, and returns the answer; the zero value for none.
func (s *stub) sendDone(token fleet.Token, summary string, objects ...fleet.Object) fleet.DoneReply {
	s.t.Helper()
	return s.sendOutcome(token, answerOf(summary), objects...)
}

func (s *stub) sendOutcome(token fleet.Token, outcome fleet.Outcome, objects ...fleet.Object) (reply fleet.DoneReply) {
	s.t.Helper()
	text, err := fleet.EncodeLarge(outcome)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	reply, _, err = s.link.Done(ctx, fleet.Done{Report: s.next(), Token: token, Outcome: text, Objects: objects})
	if err != nil {
		return fleet.DoneReply{}
	}
	return reply
}

// raw connects as a rogue program that has the key of the stub.
func raw(t *testing.T, url string) *nats.Conn {
	t.Helper()
	c, err := nats.Connect(url, nats.CustomInboxPrefix("_INBOX.team.gpu-1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// order keeps an order, but for those that only wake the runner: the owner sends them whenever its connection is back.
func (s *stub) order(o fleet.Order) {
	if o != (fleet.Order{Epoch: o.Epoch, Wake: true}) {
		s.orders <- o
	}
}
