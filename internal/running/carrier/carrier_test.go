package carrier_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/operating/hub"
	"mailboxd/internal/running/carrier"
)

const token = fleet.Token("1-7-1-1-abc")

// aHub is a hub with the runners gpu and cpu.
type aHub struct {
	t    *testing.T
	dir  string
	url  string
	stop func()
}

func newHub(t *testing.T) *aHub {
	t.Helper()
	h := &aHub{t: t, dir: t.TempDir()}
	if _, err := hub.Init(hub.Plan{Dir: h.dir, Root: "main", Listen: "127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gpu", "cpu"} {
		if _, err := hub.Enroll(h.dir, name); err != nil {
			t.Fatal(err)
		}
	}
	h.start("")
	return h
}

// start serves the hub; again at the same address after stop.
func (h *aHub) start(listen string) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan string, 1)
	var wait sync.WaitGroup
	wait.Go(func() {
		err := hub.Serve(ctx, hub.Options{Dir: h.dir, Listen: listen, Ready: func(url string) { ready <- url }, Log: zerolog.Nop()})
		if err != nil {
			h.t.Errorf("serve hub: %v", err)
			ready <- ""
		}
	})
	h.url = <-ready
	h.stop = sync.OnceFunc(func() { cancel(); wait.Wait() })
	h.t.Cleanup(h.stop)
}

func (h *aHub) address() string { return strings.TrimPrefix(h.url, "nats://") }

func (h *aHub) options(file string) carrier.Options {
	h.t.Helper()
	c, err := carrier.ReadCredentials(h.dir + "/" + file)
	if err != nil {
		h.t.Fatal(err)
	}
	return carrier.Options{URL: h.url, Credentials: c}
}

func (h *aHub) owner(o carrier.OwnerOptions) *carrier.Owner {
	h.t.Helper()
	o.Options = h.options("hub.nk")
	owner, err := carrier.DialOwner(h.t.Context(), o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(owner.Close)
	return owner
}

func (h *aHub) runner(name string, order func(fleet.Order)) *carrier.Runner {
	h.t.Helper()
	r, err := carrier.DialRunner(carrier.RunnerOptions{Options: h.options("credentials/" + name + ".nk"), Order: order})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(r.Close)
	return r
}

func report(name string) fleet.Report {
	return fleet.Report{Protocol: 1, Runner: name, Incarnation: "i", Session: "s", Number: 1}
}

func done(name string) fleet.Done {
	return fleet.Done{Report: report(name), Token: token, Outcome: []byte(`{}`)}
}

func TestRequestsOfARunnerReachTheOwnerAndAreAnswered(t *testing.T) {
	h := newHub(t)
	claims := make(chan func(fleet.Reply), 1)
	h.owner(carrier.OwnerOptions{
		Hello: func(m fleet.Hello, answer func(fleet.Reply)) { answer(fleet.Reply{Epoch: 1, Drain: m.Version}) },
		Beat:  func(m fleet.Beat, answer func(fleet.Reply)) { answer(fleet.Reply{Epoch: 2, Session: m.Session}) },
		Claim: func(_ fleet.Claim, answer func(fleet.Reply)) { claims <- answer },
		Note: func(m fleet.Note, answer func(fleet.NoteReply)) {
			answer(fleet.NoteReply{Token: m.Token, Stop: "enough"})
		},
		Done: func(m fleet.Done, answer func(fleet.DoneReply)) {
			answer(fleet.DoneReply{Token: m.Token, Settled: true})
		},
	})
	r, ctx := h.runner("gpu", nil), t.Context()
	hello, err := r.Hello(ctx, fleet.Hello{Report: report("gpu"), Announcement: fleet.Announcement{Version: "v1"}})
	if err != nil || hello.Drain != "v1" {
		t.Errorf("hello: %+v, %v", hello, err)
	}
	if beat, err := r.Beat(ctx, fleet.Beat{Report: report("gpu")}); err != nil || beat.Session != "s" {
		t.Errorf("beat: %+v, %v", beat, err)
	}
	note, err := r.Note(ctx, fleet.Note{Runner: "gpu", Incarnation: "i", Token: token, Number: 1, Ask: &fleet.AskNote{}})
	if err != nil || note.Stop != "enough" {
		t.Errorf("note: %+v, %v", note, err)
	}
	if reply, late, err := r.Done(ctx, done("gpu")); err != nil || late || !reply.Settled {
		t.Errorf("done: %+v, late %t, %v", reply, late, err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		reply, err := r.Claim(ctx, fleet.Claim{Report: report("gpu"), ID: "c1", Free: 1})
		if err != nil || len(reply.Jobs) != 1 || string(reply.Jobs[0].Work) != `{"run_id":"r"}` {
			t.Errorf("claim: %+v, %v", reply, err)
		}
	})
	job := fleet.Job{Token: token, Agent: "a", Digest: strings.Repeat("a", 64), Work: []byte(`{"run_id":"r"}`)}
	(<-claims)(fleet.Reply{Epoch: 1, Claim: "c1", Jobs: []fleet.Job{job}}) // another goroutine may answer, later
	wait.Wait()
}

func TestOrdersAndLogLinesArrive(t *testing.T) {
	h := newHub(t)
	orders, lines := make(chan fleet.Order, 1), make(chan fleet.LogLine, 1)
	r := h.runner("gpu", func(o fleet.Order) { orders <- o })
	h.runner("cpu", func(o fleet.Order) { t.Errorf("runner cpu received %+v", o) })
	owner := h.owner(carrier.OwnerOptions{Beat: func(_ fleet.Beat, answer func(fleet.Reply)) { answer(fleet.Reply{Epoch: 1}) }})
	stop, err := owner.Follow("gpu", token, func(l fleet.LogLine) { lines <- l })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := owner.Order("gpu", fleet.Order{Epoch: 1, Cancel: token}); err != nil {
		t.Fatal(err)
	}
	if o := <-orders; o.Cancel != token {
		t.Errorf("order is %+v", o)
	}
	if err := r.Log(token, fleet.LogLine{Offset: 3, Text: []byte("hello")}); err != nil {
		t.Fatal(err)
	}
	if l := <-lines; l.Offset != 3 || string(l.Text) != "hello" {
		t.Errorf("line is %+v", l)
	}
}

func TestAnOutcomeWaitsAtTheHubForTheOwner(t *testing.T) {
	h := newHub(t)
	h.owner(carrier.OwnerOptions{}).Close() // it has made the stream
	r := h.runner("gpu", nil)
	for range 2 { // the second one is the same message
		if reply, late, err := r.Done(t.Context(), done("gpu")); err != nil || !late || reply.Settled {
			t.Fatalf("done: %+v, late %t, %v", reply, late, err)
		}
	}
	if _, err := r.Beat(t.Context(), fleet.Beat{Report: report("gpu")}); !errors.Is(err, carrier.ErrNoResponders) {
		t.Errorf("beat without owner: %v", err)
	}
	received := make(chan fleet.Done, 3)
	owner := h.owner(carrier.OwnerOptions{Done: func(m fleet.Done, answer func(fleet.DoneReply)) {
		received <- m
		answer(fleet.DoneReply{Token: m.Token, Settled: true})
	}})
	if m := <-received; m.Token != token || m.Runner != "gpu" {
		t.Errorf("received %+v", m)
	}
	if reply, late, err := r.Done(t.Context(), done("gpu")); err != nil || late || !reply.Settled {
		t.Errorf("done to the owner: %+v, late %t, %v", reply, late, err)
	}
	if m := <-received; m.Token != token || len(received) != 0 {
		t.Errorf("received %+v and %d more", m, len(received))
	}
	owner.Close()
}

func TestEachOwnerTakesAGreaterEpoch(t *testing.T) {
	h := newHub(t)
	first, second := h.owner(carrier.OwnerOptions{}), h.owner(carrier.OwnerOptions{})
	taken := make(chan int64, 20)
	var wait sync.WaitGroup
	for i := range 10 {
		owner := []*carrier.Owner{first, second}[i%2]
		wait.Go(func() {
			epoch, err := owner.TakeEpoch(t.Context(), 5)
			if err != nil {
				t.Error(err)
			}
			taken <- epoch
		})
	}
	wait.Wait()
	close(taken)
	seen := map[int64]bool{}
	for epoch := range taken {
		if seen[epoch] || epoch < 6 || epoch > 15 {
			t.Errorf("epoch %d was taken; want each of 6 to 15 once", epoch)
		}
		seen[epoch] = true
	}
}

func TestAConnectionComesBack(t *testing.T) {
	h := newHub(t)
	var mu sync.Mutex
	var changes []string
	changed := make(chan struct{}, 100)
	beat := func(_ fleet.Beat, answer func(fleet.Reply)) { answer(fleet.Reply{Epoch: 1}) }
	h.owner(carrier.OwnerOptions{Beat: beat})
	o := carrier.RunnerOptions{Options: h.options("credentials/gpu.nk")}
	o.Changed = func(lost error) {
		mu.Lock()
		changes = append(changes, map[bool]string{true: "lost", false: "back"}[lost != nil])
		mu.Unlock()
		changed <- struct{}{}
	}
	r, err := carrier.DialRunner(o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	address := h.address()
	h.stop()
	<-changed
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := r.Beat(ctx, fleet.Beat{Report: report("gpu")}); !errors.Is(err, carrier.ErrAway) {
		t.Errorf("beat without hub: %v", err)
	}
	h.start(address)
	<-changed
	mu.Lock()
	if got := strings.Join(changes, " "); !strings.HasPrefix(got, "lost") || !strings.HasSuffix(got, "back") {
		t.Errorf("changes are %s", got)
	}
	mu.Unlock()
	for {
		_, err := r.Beat(t.Context(), fleet.Beat{Report: report("gpu")})
		if err == nil {
			break
		}
		if !errors.Is(err, carrier.ErrNoResponders) { // the owner comes back at a time of its own
			t.Fatal(err)
		}
	}
}

func TestAWrongKeyIsRefused(t *testing.T) {
	h := newHub(t)
	other := newHub(t)
	o := other.options("credentials/gpu.nk")
	o.URL = h.url
	if _, err := carrier.DialRunner(carrier.RunnerOptions{Options: o}); !errors.Is(err, carrier.ErrKey) ||
		!strings.Contains(err.Error(), "mailboxd-hub enroll gpu") {
		t.Errorf("dial with the key of another hub: %v", err)
	}
}

func TestAKeyThatIsTakenAwayIsReportedOnce(t *testing.T) {
	h := newHub(t)
	o := carrier.RunnerOptions{Options: h.options("credentials/gpu.nk")}
	changes := make(chan error, 100)
	o.Changed = func(lost error) { changes <- lost }
	r, err := carrier.DialRunner(o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := hub.Remove(h.dir, "gpu"); err != nil {
		t.Fatal(err)
	}
	lost := <-changes
	for lost != nil && !errors.Is(lost, carrier.ErrKey) {
		lost = <-changes
	}
	if lost == nil || len(changes) > 0 {
		t.Errorf("the last change is %v, and %d more", lost, len(changes))
	}
}

func TestAHubThatIsAwayIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	o := carrier.Options{URL: "nats://" + l.Addr().String(), Root: "main"}
	if _, err := carrier.DialRunner(carrier.RunnerOptions{Options: o, Name: "gpu"}); err == nil {
		t.Error("dialled a hub that isn't there")
	}
}

func TestAnAddressNeedsTLSUnlessItIsOnThisMachine(t *testing.T) {
	for address, ok := range map[string]bool{
		"tls://hub:4222": true, "nats://127.0.0.1:4222": true, "nats://[::1]:4222": true, "nats://localhost:1": true,
		"nats://hub:4222": false, "nats://10.0.0.1:4222": false, "ws://hub": false, "hub:4222": false, "": false,
		"tls://me:secret@hub:4222": false, "tls://": false, "nats://127.0.0.1.example.org:4222": false,
	} {
		if err := carrier.CheckURL(address); (err == nil) != ok {
			t.Errorf("CheckURL(%q) = %v", address, err)
		}
	}
}
