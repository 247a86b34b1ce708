package runnerdaemon

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/operating/config"
	"mailboxd/mailbox"
)

func TestARunThatTakesAWhileIsReportedWhileAClaimIsPending(t *testing.T) {
	o := newOwner(t)
	o.patience = fleet.ClaimWait
	r := newRunner(t, o, slow)
	_, open := gate(r)
	r.start()
	began := time.Now()
	token := o.give("slow", nil)
	o.awaitState(token, fleet.Began)
	if took := time.Since(began); took > fleet.ClaimWait/2 {
		t.Errorf("the owner learned after %v that the run has begun", took)
	}
	open()
	o.outcome(token)
}

func TestASlotThatIsFreeAgainTakesAJobWhileClaimsOfBeforeArePending(t *testing.T) {
	o := newOwner(t)
	o.patience = fleet.ClaimWait
	r := newRunner(t, o, "slots: 2\n"+slow+"  - {id: echo, exec: {command: [sh, -c, 'echo hello'], output: text}}\n")
	_, open := gate(r)
	r.start()
	began := time.Now()
	first := o.give("slow", nil)
	for range 4 { // each takes the last slot, and the one of its agent
		o.outcome(o.give("echo", nil))
	}
	open()
	o.outcome(first)
	if took := time.Since(began); took > fleet.ClaimWait {
		t.Errorf("6 short runs took %v", took)
	}
}

func TestDoctorReadsTheLatestReasonOfTheOwner(t *testing.T) {
	dir := t.TempDir()
	state, err := mailbox.OpenState(filepath.Join(dir, "state"), filepath.Join(dir, "mailbox"))
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	d := &daemon{session: "s", state: state}
	d.Log = zerolog.Nop()
	d.machine, _ = fleet.NewRunner("s", 0, nil)
	for range 20 { // several answers at once
		var all sync.WaitGroup
		for _, why := range []string{"", "a person drained it", "", "its disk is full"} {
			all.Go(func() { d.apply(t.Context(), fleet.Reply{Session: "s", Drain: why}) })
		}
		all.Wait()
		text, err := os.ReadFile(filepath.Join(state.Path(), config.NoJobsFile))
		if said := strings.TrimSpace(string(text)); said != d.drain || err != nil && !os.IsNotExist(err) {
			t.Fatalf("doctor reads %q, %v; the owner said %q", said, err, d.drain)
		}
	}
}
