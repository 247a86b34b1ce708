package owner_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/running/carrier"
	"mailboxd/internal/running/owner"
)

// refusing starts a hub that makes no bucket for cpu-1, and an owner that knows cpu-1 and gpu-1.
func refusing(t *testing.T, before func(url string)) *mailboxOwner {
	t.Helper()
	url := startHub(t)
	c, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	js, err := jetstream.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "other", Subjects: []string{"$O.in_cpu-1.C.>"}}); err != nil {
		t.Fatal(err)
	}
	before(url)
	dir := t.TempDir()
	known := `{"epoch": 1, "runners": [{"runner": "cpu-1", "incarnation": "i"}, {"runner": "gpu-1", "incarnation": "i"}]}`
	if err := os.WriteFile(filepath.Join(dir, owner.FileName), []byte(known), 0o600); err != nil {
		t.Fatal(err)
	}
	return startOwner(t, url, dir)
}

func TestARunnerIsWokenAlsoIfTheHubKeepsNoFilesForAnother(t *testing.T) {
	orders := make(chan fleet.Order, 100)
	refusing(t, func(url string) {
		link, err := carrier.DialRunner(carrier.RunnerOptions{
			Options: carrier.Options{URL: url, Root: "team"}, Name: "gpu-1", Order: func(o fleet.Order) { orders <- o },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(link.Close)
	})
	if o := await(t, "an order", orders); !o.Wake {
		t.Errorf("the order is %+v; want that it wakes the runner", o)
	}
}

func TestOneFunctionMakesWhatTheHubLacks(t *testing.T) {
	m := refusing(t, func(string) {})
	for m.Hub() != "" {
		runtime.Gosched()
	}
	before := runtime.NumGoroutine()
	for range 50 {
		m.LinkChanged(errors.New("lost"))
		m.LinkChanged(nil)
	}
	more := 50
	for end := time.Now().Add(10 * time.Second); more > 10 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		more = runtime.NumGoroutine() - before
	}
	if more > 10 {
		t.Errorf("%d functions try to make the buckets of a runner", more)
	}
}
