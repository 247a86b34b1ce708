package sealing_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/operating/sealing"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/seal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a ledger in the state directory.
func open(t *testing.T, o sealing.Options) *ledger.Ledger {
	t.Helper()
	l, _, err := ledger.Open(filepath.Join(o.State, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func logEvent(t *testing.T, l *ledger.Ledger) {
	t.Helper()
	if err := l.Update(context.Background(), func(tx *ledger.Tx) error {
		return tx.Log(task.Event{Time: time.Now(), Kind: "daemon.paused"})
	}); err != nil {
		t.Fatal(err)
	}
}

// serve logs an event, and ends as a daemon does. It returns what was logged.
func serve(t *testing.T, o sealing.Options) string {
	t.Helper()
	var log bytes.Buffer
	l := open(t, o)
	s, err := sealing.Open(context.Background(), o, l, zerolog.New(&log))
	if err != nil {
		t.Fatal(err)
	}
	logEvent(t, l)
	s.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return log.String()
}

func audit(t *testing.T, o sealing.Options) sealing.Audit {
	t.Helper()
	r, err := ledger.OpenReader(filepath.Join(o.State, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := o.Check(context.Background(), r, nil, "")
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnEventIsSealedAfterAWhileAndItsSealGoesToTheAnchor(t *testing.T) {
	o := sealing.Options{State: t.TempDir(), AnchorFile: filepath.Join(t.TempDir(), "anchor")}
	l := open(t, o)
	s, err := sealing.Open(context.Background(), o, l, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	s.After = time.Millisecond
	ctx, stop := context.WithCancel(context.Background())
	var served errgroup.Group
	served.Go(func() error { return s.Serve(ctx) })
	for n := 1; n <= 3; n++ {
		logEvent(t, l)
		for sealed := 0; sealed < n; {
			changed := l.Changed()
			seals, err := l.SealsSince(ctx, 0)
			if err != nil {
				t.Fatal(err)
			}
			if sealed = len(seals); sealed < n {
				<-changed
			}
		}
	}
	stop()
	if err := served.Wait(); err != nil {
		t.Error(err)
	}
	s.Close()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if anchored, err := sealing.ReadAnchor(o.AnchorFile); err != nil || len(anchored) != 3 {
		t.Errorf("anchored = %+v, %v; want three seals", anchored, err)
	}
	if a := audit(t, o); a.Difference != nil || a.Events != 3 || a.Parts[0].State != seal.Sealed || a.Note != "" || a.Key != "" {
		t.Errorf("audit = %+v", a)
	}
}

func TestTheAnchorGetsLaterWhatItMissed(t *testing.T) {
	o := sealing.Options{State: t.TempDir(), AnchorFile: filepath.Join(t.TempDir(), "not/there")}
	if said := serve(t, o); !strings.Contains(said, "add seals to the anchor") {
		t.Errorf("log: %s", said)
	}
	if err := os.Mkdir(filepath.Dir(o.AnchorFile), 0o700); err != nil {
		t.Fatal(err)
	}
	serve(t, o)
	anchored, err := sealing.ReadAnchor(o.AnchorFile)
	if err != nil || len(anchored) != 2 || anchored[1].Last != 2 {
		t.Errorf("anchored = %+v, %v; want both seals", anchored, err)
	}
	if err := os.WriteFile(o.AnchorFile, []byte(`{"first":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := serve(t, o); !strings.Contains(said, "has no end; remove that line") {
		t.Errorf("log: %s", said)
	}
}

func TestANewLedgerStartsAChainThatNamesTheLastHead(t *testing.T) {
	o := sealing.Options{State: t.TempDir()}
	serve(t, o)
	head := audit(t, o).Head
	for _, name := range []string{"ledger.db", "ledger.db-last"} {
		if err := os.Remove(filepath.Join(o.State, name)); err != nil {
			t.Fatal(err)
		}
	}
	serve(t, o)
	if a := audit(t, o); a.Difference != nil || len(a.Starts) != 1 || a.Starts[0].Names != head.Hash {
		t.Errorf("audit = %+v; want a chain that names %s", a, head.Hash)
	}
}

func TestNoNewKeyIsMadeWhereThereWasOne(t *testing.T) {
	for name, files := range map[string][]string{
		"the key": {"seal.key"}, "the key and the list": {"seal.key", "keys.jsonl"}, "all": {"seal.key", "keys.jsonl", "head.json"},
	} {
		o := sealing.Options{State: t.TempDir()}
		serve(t, o)
		for _, file := range files {
			if err := os.Remove(filepath.Join(o.State, "keys", file)); err != nil {
				t.Fatal(err)
			}
		}
		if said := serve(t, o); !strings.Contains(said, "seal.key") {
			t.Errorf("without %s: %s", name, said)
		}
		if _, err := os.Stat(filepath.Join(o.State, "keys/seal.key")); err == nil {
			t.Errorf("without %s, a new key was made", name)
		}
		a := audit(t, o)
		if a.Key == "" || a.Parts[len(a.Parts)-1].State != seal.Unsealed {
			t.Errorf("without %s, audit = %+v", name, a)
		}
		if (a.Difference != nil) != (len(files) > 1) {
			t.Errorf("without %s, difference = %+v", name, a.Difference)
		}
	}
}

// The list is written after the key. A daemon that died between them finishes it.
func TestAListIsMadeAgainOnlyForTheKeyOfTheLastSeal(t *testing.T) {
	o, other := sealing.Options{State: t.TempDir()}, sealing.Options{State: t.TempDir()}
	serve(t, o)
	serve(t, other)
	list := filepath.Join(o.State, "keys/keys.jsonl")
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	if said := serve(t, o); said != "" || audit(t, o).Difference != nil {
		t.Errorf("log: %s", said)
	}
	foreign, _ := os.ReadFile(filepath.Join(other.State, "keys/seal.key"))
	if err := errors.Join(os.Remove(list), os.WriteFile(filepath.Join(o.State, "keys/seal.key"), foreign, 0o600)); err != nil {
		t.Fatal(err)
	}
	if said := serve(t, o); !strings.Contains(said, "is another one; put the earlier one back") {
		t.Errorf("log: %s", said)
	}
}
