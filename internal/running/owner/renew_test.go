package owner_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/running/carrier"
	"mailboxd/internal/running/owner"
)

func TestARunnerIsWokenAlsoIfTheHubKeepsNoFilesForAnother(t *testing.T) {
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
	orders := make(chan fleet.Order, 100)
	link, err := carrier.DialRunner(carrier.RunnerOptions{
		Options: carrier.Options{URL: url, Root: "team"}, Name: "gpu-1", Order: func(o fleet.Order) { orders <- o },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	dir := t.TempDir()
	known := `{"epoch": 1, "runners": [{"runner": "cpu-1", "incarnation": "i"}, {"runner": "gpu-1", "incarnation": "i"}]}`
	if err := os.WriteFile(filepath.Join(dir, owner.FileName), []byte(known), 0o600); err != nil {
		t.Fatal(err)
	}
	startOwner(t, url, dir)
	if o := await(t, "an order", orders); !o.Wake {
		t.Errorf("the order is %+v; want that it wakes the runner", o)
	}
}
