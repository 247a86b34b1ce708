package carrier_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/running/carrier"
)

// rogue is a connection with the key of runner gpu that sends what it likes.
type rogue struct {
	t    *testing.T
	conn *nats.Conn
	errs chan error
}

func (h *aHub) rogue() *rogue {
	h.t.Helper()
	r := &rogue{t: h.t, errs: make(chan error, 10)}
	o := h.options("credentials/gpu.nk")
	options, err := o.Credentials.Options()
	if err != nil {
		h.t.Fatal(err)
	}
	options = append(options, nats.CustomInboxPrefix("_INBOX.main.gpu"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { r.errs <- err }))
	if r.conn, err = nats.Connect(h.url, options...); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(r.conn.Close)
	return r
}

// say sends a text to a subject as a request of a runner.
func (r *rogue) say(subject, as, text string) {
	r.t.Helper()
	m := &nats.Msg{Subject: subject, Reply: r.conn.NewInbox(), Data: []byte(text)}
	if as != "" {
		m.Header = nats.Header{"Mbx-Runner": {as}}
	}
	if err := r.conn.PublishMsg(m); err != nil {
		r.t.Fatal(err)
	}
	if err := r.conn.Flush(); err != nil {
		r.t.Fatal(err)
	}
}

// watched is an owner that notes what reached it.
type watched struct {
	*carrier.Owner
	mu       sync.Mutex
	received []string
	closed   []string
	event    chan string
}

func (h *aHub) watched() *watched {
	w := &watched{event: make(chan string, 20)}
	note := func(what string) {
		w.mu.Lock()
		w.received = append(w.received, what)
		w.mu.Unlock()
	}
	w.Owner = h.owner(carrier.OwnerOptions{
		Hello: func(m fleet.Hello, answer func(fleet.Reply)) {
			note("hello " + m.Runner)
			answer(fleet.Reply{Epoch: 1})
		},
		Claim: func(m fleet.Claim, answer func(fleet.Reply)) {
			note("claim " + m.Runner)
			answer(fleet.Reply{Epoch: 1})
		},
		Beat: func(m fleet.Beat, answer func(fleet.Reply)) { note("beat " + m.Runner); answer(fleet.Reply{Epoch: 1}) },
		Done: func(m fleet.Done, answer func(fleet.DoneReply)) {
			note("done " + m.Runner)
			answer(fleet.DoneReply{Token: m.Token, Settled: true})
		},
		Note: func(m fleet.Note, answer func(fleet.NoteReply)) {
			note("note " + m.Runner)
			answer(fleet.NoteReply{Token: m.Token})
		},
		Closed: func(runner, reason string) {
			w.mu.Lock()
			w.closed = append(w.closed, runner)
			w.mu.Unlock()
			w.event <- reason
		},
	})
	return w
}

const goodBeat = `{"protocol":1,"runner":"gpu","incarnation":"i","session":"s","number":1}`

func TestAMalformedMessageClosesTheLinkOfItsRunnerOnce(t *testing.T) {
	object := `{"kind":"artifact","name":"../../results/x","key":"k","size":1,"sha256":"` + strings.Repeat("a", 64) + `"}`
	head := strings.TrimSuffix(goodBeat, "}")
	for name, c := range map[string]struct{ subject, text, reason string }{
		"no JSON":          {"mbx.main.beat.gpu", "hello", "malformed"},
		"oversized":        {"mbx.main.hello.gpu", head + `,"version":"` + strings.Repeat("x", 1<<20) + `"}`, "at most"},
		"name of another":  {"mbx.main.beat.gpu", strings.Replace(goodBeat, "gpu", "cpu", 1), "names runner"},
		"token of another": {"mbx.main.done.gpu.1-1-1-1-x", head + `,"token":"1-2-1-1-y","outcome":{}}`, "names runner"},
		"path of an artifact": {"mbx.main.done.gpu.1-1-1-1-x",
			head + `,"token":"1-1-1-1-x","outcome":{},"objects":[` + object + `]}`, `without ".."`},
		"kept, and malformed": {"mbx.main.late.gpu.1-1-1-1-x", "{", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			w, r, good := h.watched(), h.rogue(), h.runner("cpu", nil)
			r.say(c.subject, "gpu", c.text)
			if reason := <-w.event; !strings.Contains(reason, c.reason) {
				t.Errorf("the link is closed because %s; want %s", reason, c.reason)
			}
			r.say(c.subject, "gpu", c.text)
			r.say("mbx.main.beat.gpu", "gpu", goodBeat)
			if _, err := good.Beat(t.Context(), fleet.Beat{Report: report("cpu")}); err != nil {
				t.Errorf("another runner isn't served: %v", err)
			}
			w.mu.Lock()
			if strings.Join(w.received, ",") != "beat cpu" || strings.Join(w.closed, ",") != "gpu" {
				t.Errorf("received %q, closed %q", w.received, w.closed)
			}
			w.mu.Unlock()
			gpu := h.runner("gpu", nil)
			for again := true; again; { // the hub may bring the second message later, which closes the link once more
				w.Reopen("gpu")
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				_, err := gpu.Beat(ctx, fleet.Beat{Report: report("gpu")})
				stop()
				if again = errors.Is(err, carrier.ErrAway); err != nil && !again {
					t.Errorf("after Reopen: %v", err)
				}
			}
		})
	}
}

func TestARogueRunnerCanNotSpeakForAnother(t *testing.T) {
	h := newHub(t)
	w, r, good := h.watched(), h.rogue(), h.runner("cpu", nil)
	if err := w.Ensure(t.Context(), "cpu"); err != nil {
		t.Fatal(err)
	}
	beat := strings.Replace(goodBeat, "gpu", "cpu", 1)
	for _, subject := range []string{
		"mbx.main.beat.cpu", "mbx.main.done.cpu.1-1-1-1-x", "mbx.main.late.cpu.1-1-1-1-x", "mbx.main.to.cpu.order", "mbx.other.beat.gpu",
		"_INBOX.main.cpu.x", "_INBOX.main.owner.x", "$O.out_cpu.C.x", "$JS.API.STREAM.PURGE.mbx_main_late", "$JS.API.STREAM.DELETE.OBJ_in_gpu",
		"$KV.mbx_main_owner.epoch", "$JS.API.CONSUMER.MSG.NEXT.mbx_main_late.owner",
	} {
		r.say(subject, "cpu", beat)
		if err := <-r.errs; !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
			t.Errorf("publish to %s: %v", subject, err)
		}
	}
	for _, subject := range []string{"_INBOX.main.cpu.>", "_INBOX.>", "mbx.main.to.cpu.>", "mbx.main.>", "$O.in_cpu.>", ">"} {
		if _, err := r.conn.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		if err := <-r.errs; !strings.Contains(strings.ToLower(err.Error()), "permissions violation") {
			t.Errorf("subscribe to %s: %v", subject, err)
		}
	}
	// The hub answers to any subject that a request names: here the subject of another runner.
	forged := &nats.Msg{Subject: "$JS.API.INFO", Reply: "mbx.main.beat.cpu"}
	if err := r.conn.PublishMsg(forged); err != nil {
		t.Fatal(err)
	}
	if err := r.conn.Flush(); err != nil {
		t.Fatal(err)
	}
	r.say("mbx.main.beat.gpu", "", goodBeat) // no header
	if _, err := good.Beat(t.Context(), fleet.Beat{Report: report("cpu")}); err != nil {
		t.Errorf("the other runner isn't served: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Join(w.received, ",") != "beat cpu" || len(w.closed) > 0 {
		t.Errorf("received %q, closed %q", w.received, w.closed)
	}
}

// describe writes what the hub says about an object of the runner's bucket, which the runner makes up.
func (r *rogue) describe(key, bucket, rest string) {
	r.t.Helper()
	subject := "$O.out_gpu.M." + base64.URLEncoding.EncodeToString([]byte(key))
	text := fmt.Sprintf(`{"name":%q,"bucket":%q,"nuid":"n","chunks":1,"size":4%s}`, key, bucket, rest)
	if _, err := r.conn.Request(subject, []byte(text), 10*time.Second); err != nil { // the hub has it then
		r.t.Fatal(err)
	}
}

// besideRogue returns an owner, the rogue runner gpu, and an object that the runner cpu has sent.
func besideRogue(t *testing.T) (*carrier.Owner, *rogue, fleet.Object) {
	t.Helper()
	h := newHub(t)
	owner, r, cpu := h.owner(carrier.OwnerOptions{}), h.rogue(), h.runner("cpu", nil)
	if err := errors.Join(owner.Ensure(t.Context(), "gpu"), owner.Ensure(t.Context(), "cpu")); err != nil {
		t.Fatal(err)
	}
	object, err := cpu.Put(t.Context(), fleet.ObjectLog, "k", "", strings.NewReader("line"))
	if err != nil {
		t.Fatal(err)
	}
	return owner, r, object
}

func TestALinkOfARogueRunnerIsNotFollowed(t *testing.T) {
	owner, r, object := besideRogue(t)
	for bucket, what := range map[string]string{"out_gpu": "itself", "out_cpu": "an object of another runner"} {
		r.describe("k", bucket, fmt.Sprintf(`,"options":{"link":{"bucket":%q,"name":"k"}}`, bucket))
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		err := owner.Get(ctx, "gpu", object, &bytes.Buffer{})
		if stop(); !errors.Is(err, carrier.ErrObject) {
			t.Errorf("getting a link to %s: %v; want that it isn't the object", what, err)
		}
	}
}

func TestARogueRunnerCanNotHaveObjectsOfAnotherRemoved(t *testing.T) {
	owner, r, object := besideRogue(t)
	r.describe("k", "out_cpu", "")
	if err := owner.Forget(t.Context(), "gpu", "k"); err != nil {
		t.Errorf("removing an object whose description names another bucket: %v", err)
	}
	if err := owner.Get(t.Context(), "cpu", object, &bytes.Buffer{}); err != nil {
		t.Errorf("the object of the other runner: %v", err)
	}
	object.SHA256 = strings.Repeat("0", 64)
	if err := owner.Get(t.Context(), "gpu", object, &bytes.Buffer{}); !errors.Is(err, carrier.ErrMissing) {
		t.Errorf("the object that was removed: %v", err)
	}
}

// reflect asks the hub for messages, and names the subject of another runner for the answer. One of them is a message
// that the runner makes up, with the headers of the other runner.
func (r *rogue) reflect(ctx context.Context, to, text string) {
	r.t.Helper()
	const at = "$O.out_gpu.C.n"
	header := nats.Header{"Mbx-Runner": {"cpu"}}
	if strings.HasPrefix(to, "$O.") {
		header.Set("Nats-Rollup", "all")
	}
	_, err := r.conn.RequestMsgWithContext(ctx, &nats.Msg{Subject: at, Header: header, Data: []byte(text)})
	for _, question := range []string{"INFO", "STREAM.INFO.OBJ_out_gpu", "DIRECT.GET.OBJ_out_gpu." + at} {
		err = errors.Join(err, r.conn.PublishMsg(&nats.Msg{Subject: "$JS.API." + question, Reply: to}))
	}
	last := &nats.Msg{Subject: "$JS.API.STREAM.MSG.GET.OBJ_out_gpu", Reply: to, Data: []byte(`{"last_by_subj":"` + at + `"}`)}
	if err := errors.Join(err, r.conn.PublishMsg(last), r.conn.Flush()); err != nil {
		r.t.Fatal(err)
	}
}

func TestARogueRunnerCanNotHaveTheHubSpeakForAnother(t *testing.T) {
	h := newHub(t)
	w, r, good := h.watched(), h.rogue(), h.runner("cpu", nil)
	ctx, stop := context.WithTimeout(t.Context(), 6*time.Second)
	defer stop()
	if err := errors.Join(w.Ensure(ctx, "gpu"), w.Ensure(ctx, "cpu")); err != nil {
		t.Fatal(err)
	}
	object, err := w.Put(ctx, "cpu", fleet.ObjectLog, "k", "", strings.NewReader("line"))
	if err != nil {
		t.Fatal(err)
	}
	beat := strings.Replace(goodBeat, "gpu", "cpu", 1)
	done := strings.TrimSuffix(beat, "}") + `,"token":"1-1-1-1-x","outcome":{}}`
	for to, text := range map[string]string{
		"mbx.main.beat.cpu": beat, "mbx.main.late.cpu.1-1-1-1-x": done, "mbx.main.late.cpu.1-1-1-1-y": "{",
		"$JS.API.STREAM.DELETE.OBJ_in_cpu": "", "$JS.API.STREAM.PURGE.OBJ_in_cpu": "", "$O.in_cpu.C.n": "",
	} {
		r.reflect(ctx, to, text)
	}
	time.Sleep(time.Second)
	if err := good.Get(ctx, object, &bytes.Buffer{}); err != nil {
		t.Errorf("the object of the other runner: %v", err)
	}
	if _, err := good.Beat(ctx, fleet.Beat{Report: report("cpu")}); err != nil {
		t.Errorf("the other runner isn't served: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Join(w.received, ",") != "beat cpu" || len(w.closed) > 0 {
		t.Errorf("received %q, closed %q", w.received, w.closed)
	}
}
