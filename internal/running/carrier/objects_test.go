package carrier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/running/carrier"
	"mailboxd/internal/testtools/slowtest"
)

func TestObjectsArriveAsTheyWereSent(t *testing.T) {
	h := newHub(t)
	owner, r, ctx := h.owner(carrier.OwnerOptions{}), h.runner("gpu", nil), t.Context()
	if err := owner.Ensure(ctx, "gpu"); err != nil {
		t.Fatal(err)
	}
	body := bytes.Repeat([]byte("0123456789abcdef"), 20_000) // several chunks
	in, err := owner.Put(ctx, "gpu", fleet.ObjectBundle, "k1", "", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := r.Get(ctx, in, &got); err != nil || !bytes.Equal(got.Bytes(), body) {
		t.Fatalf("runner got %d bytes: %v", got.Len(), err)
	}
	out, err := r.Put(ctx, fleet.ObjectPatch, "k2", "", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	got.Reset()
	if err := owner.Get(ctx, "gpu", out, &got); err != nil || !bytes.Equal(got.Bytes(), body) {
		t.Fatalf("owner got %d bytes: %v", got.Len(), err)
	}
	for name, change := range map[string]func(*fleet.Object){
		"another digest": func(o *fleet.Object) { o.SHA256 = strings.Repeat("0", 64) },
		"a smaller size": func(o *fleet.Object) { o.Size-- },
		"a larger size":  func(o *fleet.Object) { o.Size++ },
	} {
		lie := out
		change(&lie)
		if err := owner.Get(ctx, "gpu", lie, &got); !errors.Is(err, carrier.ErrObject) {
			t.Errorf("an object with %s: %v", name, err)
		}
	}
	if err := owner.Forget(ctx, "gpu", "k1", "k2", "never"); err != nil {
		t.Error(err)
	}
	if err := owner.Get(ctx, "gpu", out, &got); err == nil {
		t.Error("a forgotten object was got")
	}
}

// slowWriter takes its first bytes after a pause.
type slowWriter struct {
	bytes.Buffer
	pause time.Duration
}

func (w *slowWriter) Write(text []byte) (int, error) {
	time.Sleep(w.pause)
	w.pause = 0
	return w.Buffer.Write(text)
}

func TestAnObjectMayTakeLongerThanAnAnswer(t *testing.T) {
	slowtest.Require(t, "the object takes 6 seconds")
	h := newHub(t)
	owner, r := h.owner(carrier.OwnerOptions{}), h.runner("gpu", nil)
	if err := owner.Ensure(t.Context(), "gpu"); err != nil {
		t.Fatal(err)
	}
	body := bytes.Repeat([]byte("0123456789abcdef"), 40_000)
	out, err := r.Put(t.Context(), fleet.ObjectLog, "k", "", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	got := slowWriter{pause: 6 * time.Second}
	if err := owner.Get(t.Context(), "gpu", out, &got); err != nil || !bytes.Equal(got.Bytes(), body) {
		t.Errorf("owner got %d of %d bytes: %v", got.Len(), len(body), err)
	}
}

// A cancelled reader cancels a context while it is read.
type cancelled struct {
	cancel func()
	left   int
}

func (c *cancelled) Read(text []byte) (int, error) {
	if c.left -= len(text); c.left < 0 {
		c.cancel()
	}
	return len(text), nil
}

func TestTheHubKeepsNothingOfAnObjectThatIsCancelled(t *testing.T) {
	h := newHub(t)
	owner := h.owner(carrier.OwnerOptions{})
	if err := owner.Ensure(t.Context(), "gpu"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := owner.Put(ctx, "gpu", fleet.ObjectBundle, "k1", "", &cancelled{cancel, 4 << 20}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v; want that the context was cancelled", err)
	}
	c, err := h.options("hub.nk").Credentials.Options()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(h.url, append(c, nats.CustomInboxPrefix("_INBOX.main.owner"))...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "OBJ_in_gpu") // with its state
	if err != nil || stream.CachedInfo().State.Msgs > 0 {
		t.Errorf("the hub has %+v, %v; want nothing", stream.CachedInfo().State, err)
	}
}

func TestWhatTheHubHasIsNotSentAgain(t *testing.T) {
	h := newHub(t)
	owner, r := h.owner(carrier.OwnerOptions{BucketBytes: 300 << 10}), h.runner("gpu", nil)
	if err := owner.Ensure(t.Context(), "gpu"); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 200<<10)
	first, err := r.Put(t.Context(), fleet.ObjectLog, "k", "", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.Put(t.Context(), fleet.ObjectLog, "k", "", bytes.NewReader(body)) // there is no room for both
	if err != nil || again != first {
		t.Errorf("putting %+v again gives %+v, %v", first, again, err)
	}
	other, err := r.Put(t.Context(), fleet.ObjectLog, "k", "", strings.NewReader("other bytes"))
	var got bytes.Buffer
	if err := errors.Join(err, owner.Get(t.Context(), "gpu", other, &got)); err != nil || got.String() != "other bytes" {
		t.Errorf("putting other bytes gives %q, %v", got.String(), err)
	}
}

func TestABucketTakesNoMoreThanItsLimit(t *testing.T) {
	h := newHub(t)
	owner, r := h.owner(carrier.OwnerOptions{BucketBytes: 300 << 10}), h.runner("gpu", nil)
	if err := owner.Ensure(t.Context(), "gpu"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Put(t.Context(), fleet.ObjectLog, "k", "", bytes.NewReader(make([]byte, 1<<20))); err == nil {
		t.Error("a bucket of 300 KiB took 1 MiB")
	}
	if _, err := r.Put(t.Context(), fleet.ObjectLog, "k", "", bytes.NewReader(make([]byte, 1<<10))); err != nil {
		t.Errorf("after a refused object: %v", err)
	}
}

func TestARunnerHasAShareOfAHubThatCannotReserveIt(t *testing.T) {
	const late = 1 << 30 // what the hub reserves for late outcomes
	hub, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: late + 1<<16, NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	hub.Start()
	t.Cleanup(func() { hub.Shutdown(); hub.WaitForShutdown() })
	at := carrier.Options{URL: hub.ClientURL(), Root: "main"}
	owner, err := carrier.DialOwner(t.Context(), carrier.OwnerOptions{Options: at, BucketBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(owner.Close)
	r, err := carrier.DialRunner(carrier.RunnerOptions{Options: at, Name: "gpu"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	for range 2 { // at each hello
		if err := owner.Ensure(t.Context(), "gpu"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Put(t.Context(), fleet.ObjectLog, "k", "", bytes.NewReader(make([]byte, 1<<20))); err != nil {
		t.Errorf("a bucket with room for 1 MiB: %v", err)
	}
	if _, err := r.Put(t.Context(), fleet.ObjectLog, "more", "", bytes.NewReader(make([]byte, 4<<20))); err == nil {
		t.Error("a bucket with room for 1 MiB took 4 MiB more")
	}
	c, err := nats.Connect(at.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	m, err := c.Request("$O.out_gpu.C.x", make([]byte, 1<<19), 10*time.Second)
	if err != nil || !strings.Contains(string(m.Data), "message size exceeds maximum") {
		t.Errorf("a message of 512 KiB: %s, %v; want it refused", m.Data, err)
	}
}

func TestAHubServesMoreRunnersThanItCanReserveSpaceFor(t *testing.T) {
	h := newHub(t)
	owner, r := h.owner(carrier.OwnerOptions{BucketBytes: 8 << 30}), h.runner("cpu", nil)
	var all errgroup.Group
	for n := range 20 {
		all.Go(func() error { return owner.Ensure(t.Context(), fmt.Sprintf("gpu-%d", n)) })
	}
	if err := errors.Join(all.Wait(), owner.Ensure(t.Context(), "cpu")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Put(t.Context(), fleet.ObjectLog, "k", "", strings.NewReader("a line")); err != nil {
		t.Error(err)
	}
}
