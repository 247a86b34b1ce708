package owner_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/carrier"
	"mailboxd/internal/running/owner"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/stores/artifact"
)

// awaitRemoved waits until the hub doesn't have an object any more.
func (s *stub) awaitRemoved(what string, object fleet.Object) {
	s.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		ctx, stop := context.WithTimeout(s.t.Context(), time.Second) // its bytes are removed before its description
		err := s.link.Get(ctx, object, io.Discard)
		stop()
		if errors.Is(err, carrier.ErrMissing) {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("the hub has %s still: %v", what, err)
		}
	}
}

func TestTheHubKeepsNothingOfARunThatItsRunnerVoided(t *testing.T) {
	j, change := repository(t)
	m, s := start(t, change)
	j, outcome, job := m.begin(t, s, j)
	bundle := *commitOf(t, job).Bundle
	if err := s.link.Get(t.Context(), bundle, io.Discard); err != nil {
		t.Fatal(err)
	}
	s.lists(nil, job.Token)
	if _, err := s.link.Beat(t.Context(), fleet.Beat{Report: s.next()}); err != nil {
		t.Fatal(err)
	}
	if got := await(t, "the outcome", outcome); got.Void == nil {
		t.Errorf("the outcome is %+v; want that the run never began", got)
	}
	m.end(job.Token, fleet.PastClosed)
	m.Settled(j.At)
	s.awaitRemoved("the bundle", bundle)
}

func TestTheHubKeepsNothingOfARunOfAnEarlierDaemon(t *testing.T) {
	j, change := repository(t)
	store := artifact.In(t.TempDir(), 0)
	kept, err := store.Put(strings.NewReader("weights"), 100)
	if err != nil {
		t.Fatal(err)
	}
	change = func(change func(*owner.Options)) func(*owner.Options) {
		return func(o *owner.Options) { change(o); o.Artifacts = store }
	}(change)
	j.Task.Refs = []envelope.Ref{{Kind: "model", URI: envelope.ArtifactURI(kept.Digest)}}
	m, s := start(t, change)
	j, outcome, job := m.begin(t, s, j)
	var w fleet.Work
	if err := fleet.DecodeLarge(job.Work, &w); err != nil || len(w.Inputs) != 1 {
		t.Fatalf("the inputs are %+v, %v", w.Inputs, err)
	}
	m.stop()
	await(t, "the end of the wait", outcome)
	again := startOwner(t, m.url, m.dir, change)
	recovered := make(chan task.Outcome, 1)
	background(t, func() { recovered <- again.Recover(t.Context(), j) })
	background(t, func() { s.done(job.Token, "done") })
	await(t, "the outcome", recovered)
	again.end(job.Token, fleet.PastSettled)
	again.Settled(j.At)
	s.awaitRemoved("the bundle", *w.Worktree.Bundle)
	s.awaitRemoved("the artifact", w.Inputs[0])
}

func TestABundleOfAJobThatCouldNotBeSentIsSentWithTheNextAttempt(t *testing.T) {
	j, change := repository(t)
	store := artifact.In(t.TempDir(), 0)
	kept, err := store.Put(strings.NewReader("weights"), 100)
	if err != nil {
		t.Fatal(err)
	}
	m, s := start(t, change, func(o *owner.Options) { o.Artifacts = store })
	j.Task.Refs = []envelope.Ref{{Kind: "model", URI: envelope.ArtifactURI(kept.Digest)}}
	obstacle := filepath.Join(j.Dir, "input", "x")
	if err := os.MkdirAll(obstacle, 0o700); err != nil {
		t.Fatal(err)
	}
	first := m.assign(t, 7, j)
	got := m.Run(t.Context(), first, nil)
	if _, unsent := errors.AsType[*schedule.UnsentError](got.Void); !unsent {
		t.Fatalf("the outcome is %+v; want that the job was not sent", got)
	}
	if err := os.RemoveAll(filepath.Dir(obstacle)); err != nil {
		t.Fatal(err)
	}
	second, outcome, job := m.begin(t, s, j)
	bundle := *commitOf(t, job).Bundle
	if !strings.HasPrefix(bundle.Key, first.At.Token) {
		t.Errorf("the bundle has the key %s; want the one of the attempt before, %s", bundle.Key, first.At.Token)
	}
	background(t, func() { s.done(job.Token, "done") })
	await(t, "the outcome", outcome)
	m.end(job.Token, fleet.PastSettled)
	m.Settled(second.At)
	s.awaitRemoved("the bundle", bundle)
}

func TestFilesOfAnOutcomeThatDidNotComeWholeAreRemovedWithTheNextOne(t *testing.T) {
	m, s := start(t)
	j, outcome, job := m.begin(t, s, jobFor(t))
	there, err := s.link.Put(t.Context(), fleet.ObjectArtifact, "k1", "first/a.txt", strings.NewReader("a"))
	if err != nil {
		t.Fatal(err)
	}
	missing := there
	missing.Key, missing.Name = "k2", "first/b.txt"
	left := fleet.Outcome{Result: envelope.Result{Status: envelope.OK}, Left: []fleet.Left{{What: "c.txt is large", Path: "/far/c.txt"}}}
	if reply := s.sendOutcome(job.Token, left, there, missing); !reply.Later || !reply.Missing {
		t.Fatalf("the outcome got %+v; want that a file is missing", reply)
	}
	if _, err := os.Lstat(filepath.Join(j.Dir, "first", "a.txt")); err != nil {
		t.Fatal(err)
	}
	background(t, func() { s.done(job.Token, "done") })
	got := await(t, "the outcome", outcome)
	if _, err := os.Lstat(filepath.Join(j.Dir, "first")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of the earlier outcome: %v; want it removed", err)
	}
	if got.Result.Review.Required {
		t.Errorf("the review says %q, which the earlier outcome said", got.Result.Review.Reason)
	}
	m.end(job.Token, fleet.PastSettled)
	m.Settled(task.Assignment{Runner: "gpu-1", Incarnation: "inc1", Token: string(job.Token)})
}
