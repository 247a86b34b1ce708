package carrier_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/operating/hub"
	"mailboxd/internal/running/carrier"
)

// changes returns a function for Options.Changed, and what it received.
func changes() (changed func(error), received chan error) {
	received = make(chan error, 100)
	return func(lost error) { received <- lost }, received
}

func TestARequestEndsWhenItsConnectionIsLost(t *testing.T) {
	h := newHub(t)
	asked := make(chan struct{}, 1)
	h.owner(carrier.OwnerOptions{Claim: func(fleet.Claim, func(fleet.Reply)) { asked <- struct{}{} }})
	r := h.runner("gpu", nil)
	answer := make(chan error, 1)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	background(t, func() {
		_, err := r.Claim(ctx, fleet.Claim{Report: report("gpu"), ID: "c1", Free: 1})
		answer <- err
	})
	<-asked
	h.stop()
	if err := <-answer; !errors.Is(err, carrier.ErrAway) || ctx.Err() != nil {
		t.Errorf("the claim ended with %v, and its context with %v; want that there is no answer, at once", err, ctx.Err())
	}
}

func TestAfterAHubLostItsDiskTheOwnerMakesWhatItKept(t *testing.T) {
	h := newHub(t)
	received := make(chan fleet.Done, 1)
	o := carrier.OwnerOptions{Done: func(m fleet.Done, answer func(fleet.DoneReply)) {
		received <- m
		answer(fleet.DoneReply{Token: m.Token, Settled: true})
	}}
	o.Options = h.options("hub.nk")
	var changed chan error
	o.Changed, changed = changes()
	owner, err := carrier.DialOwner(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	epoch, err := owner.TakeEpoch(t.Context(), 40)
	if err = errors.Join(err, owner.Ensure(t.Context(), "gpu")); err != nil {
		t.Fatal(err)
	}
	runner := carrier.RunnerOptions{Options: h.options("credentials/gpu.nk")}
	var back chan error
	runner.Changed, back = changes()
	r, err := carrier.DialRunner(runner)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	kept, err := r.Put(t.Context(), fleet.ObjectLog, "k", "", strings.NewReader("line"))
	if err != nil {
		t.Fatal(err)
	}
	h.stop()
	if err := os.RemoveAll(filepath.Join(h.dir, "jetstream")); err != nil {
		t.Fatal(err)
	}
	h.start(h.address())
	for <-changed != nil {
	}
	if err := errors.Join(owner.Renew(t.Context(), epoch), owner.Ensure(t.Context(), "gpu")); err != nil {
		t.Fatal(err)
	}
	if err := owner.Get(t.Context(), "gpu", kept, &bytes.Buffer{}); !errors.Is(err, carrier.ErrMissing) {
		t.Errorf("getting an object that is lost: %v; want that the hub doesn't have it", err)
	}
	for <-back != nil {
	}
	if _, err := r.Put(t.Context(), fleet.ObjectLog, "k", "", strings.NewReader("line")); err != nil {
		t.Errorf("putting it again: %v", err)
	}
	if again, err := owner.TakeEpoch(t.Context(), 0); err != nil || again != epoch+1 {
		t.Errorf("the next epoch is %d, %v; want %d", again, err, epoch+1)
	}
	owner.Close()
	for late := false; !late; { // what is sent while it closes has no answer
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, late, err = r.Done(ctx, done("gpu"))
		if stop(); err != nil && !errors.Is(err, carrier.ErrAway) {
			t.Fatal(err)
		}
	}
	h.owner(o)
	if m := <-received; m.Token != token {
		t.Errorf("received %+v", m)
	}
}

// background runs a function that ends before the test does.
func background(t *testing.T, do func()) {
	var group sync.WaitGroup
	group.Go(do)
	t.Cleanup(group.Wait)
}

func TestTheNextStepOfARemovedRunnerIsSaid(t *testing.T) {
	h := newHub(t)
	connect := h.options("credentials/gpu.nk")
	changed, lost := changes()
	connect.Changed = changed
	r, err := carrier.DialRunner(carrier.RunnerOptions{Options: connect})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	if err := hub.Remove(h.dir, "gpu"); err != nil {
		t.Fatal(err)
	}
	for over := time.After(20 * time.Second); ; {
		select {
		case err := <-lost:
			if !errors.Is(err, carrier.ErrKey) {
				continue
			}
			if !strings.Contains(err.Error(), "mailboxd-hub enroll gpu") {
				t.Errorf("the connection is lost: %v; want the next step", err)
			}
			return
		case <-over:
			t.Fatal("it is not reported that the key is refused")
		}
	}
}
