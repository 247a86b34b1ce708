package runnerdaemon

import (
	"os"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/stores/artifact"
)

func TestAnArtifactStaysAtTheRunnerAsLongAsARunNeedsIt(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, slow)
	begun, open := gate(r)
	input, err := o.link.Put(t.Context(), "r1", fleet.ObjectInput, "in-1", "", strings.NewReader("words"))
	if err != nil {
		t.Fatal(err)
	}
	input.Name = input.SHA256
	r.start()
	token := o.give("slow", func(_ *fleet.Job, w *fleet.Work) { w.Inputs = []fleet.Object{input} })
	o.awaitState(token, fleet.Began)
	o.await("a run that began", func() bool { o.moved(); return begun() != "" })
	r.stop()
	old, err := artifact.In(r.state(), 0).Put(strings.NewReader("of an earlier run"), artifact.MaxRun)
	if err != nil {
		t.Fatal(err)
	}
	has := func(digest string) bool {
		_, err := os.Lstat(r.state("artifacts", "sha256", digest[:2], digest))
		return err == nil
	}
	before := o.session
	r.start()
	o.await("another session", func() bool { return o.session != before })
	if !has(input.SHA256) || has(old.Digest) {
		t.Errorf("the artifact of the run is there: %v, and the other one: %v; want the first alone", has(input.SHA256), has(old.Digest))
	}
	open()
	o.outcome(token)
	o.await("no run", func() bool { return len(o.report.Runs) == 0 })
	r.stop()
	before = o.session
	r.start()
	o.await("another session", func() bool { return o.session != before })
	if has(input.SHA256) {
		t.Error("the artifact of a settled run is left")
	}
}

func TestAnArtifactThatARunPublishedStaysUntilTheOwnerHasIt(t *testing.T) {
	d := &daemon{artifacts: artifact.In(t.TempDir(), 0)}
	d.runs = map[fleet.Token]*run{}
	one := newRun(t.Context(), fleet.Job{Token: "1-1-1-1-r"})
	d.runs[one.token] = one
	e, err := d.artifacts.Put(strings.NewReader("weights"), artifact.MaxRun)
	if err != nil {
		t.Fatal(err)
	}
	after := time.Now().Add(time.Second)
	for _, step := range []struct {
		before time.Time
		do     func()
		stays  bool
	}{
		{time.Now().Add(-artifactsEvery), func() {}, true}, // the run's outcome isn't known yet
		{after, func() { d.needs(one, e.Digest) }, true},
		{after, func() { d.drop(one.token) }, false},
	} {
		step.do()
		leftFiles{d}.removeArtifacts(step.before)
		if _, err := d.artifacts.Stat(e.Digest); (err == nil) != step.stays {
			t.Fatalf("the artifact: %v; want it there: %v", err, step.stays)
		}
	}
}
