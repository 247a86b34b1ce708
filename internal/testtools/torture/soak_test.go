package torture_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailboxd/internal/testtools/slowtest"
)

const (
	restarts   = 20
	bodies     = 1000      // lines that are written at once
	soakMemory = 256 << 10 // KiB; more would grow with the number of tasks
)

// The soak: many small tasks through one agent, while the daemon is restarted
// twenty times, every other time without a warning. Each task has its result in
// the end, and the daemon is no larger for their number.
func TestEveryTaskOfALongSoakHasItsResult(t *testing.T) {
	slowtest.Require(t, "it restarts a daemon twenty times under load")
	s := newSite(t)
	s.binds = []bind{soaked()}
	if err := os.WriteFile(s.path("config.yaml"), s.config(), 0o600); err != nil {
		t.Fatal(err)
	}
	began, peak := time.Now(), 0
	if err := s.sow(*soak); err != nil {
		t.Fatal(err)
	}
	for n := range restarts {
		v, err := s.start("")
		if err != nil {
			t.Fatal(err)
		}
		s.await(t, v, *soak*(n+1)/(restarts+1))
		peak = max(peak, v.memory())
		if n%2 == 0 {
			_ = v.cmd.Process.Signal(syscall.SIGTERM) // it is there: await has seen to that
			<-v.gone
		}
		v.live(t.Context(), 0)
	}
	v, err := s.start("")
	if err != nil {
		t.Fatal(err)
	}
	s.await(t, v, *soak)
	peak = max(peak, v.memory())
	took := time.Since(began)
	v.live(t.Context(), 0)
	s.reap(t, peak, took)
}

// soaked is the agent of the soak.
func soaked() bind {
	if *workers {
		return bind{part: "worker", worker: true, concurrency: 4, retries: 9}
	}
	return bind{part: "fast", concurrency: 4}
}

// sow writes the task lines.
func (s *site) sow(count int) error {
	file, err := os.OpenFile(s.tasks("soak.jsonl"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	text := bufio.NewWriterSize(file, bodies<<8)
	for n := range count {
		fmt.Fprintln(text, envelopeOf(promise{id: fmt.Sprint("soak-", n), part: soaked().part, version: 1}))
	}
	return errors.Join(text.Flush(), file.Close())
}

// await blocks until there are so many results.
func (s *site) await(t *testing.T, v *server, want int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute+time.Duration(*soak)*5*time.Millisecond)
	defer stop()
	for look := time.NewTicker(20 * time.Millisecond); ; {
		there, err := os.ReadDir(s.path("box/results"))
		if err != nil {
			t.Fatal(err)
		}
		if len(there) >= want {
			look.Stop()
			return
		}
		select {
		case <-look.C:
		case <-v.gone:
			t.Fatalf("the daemon ended with %d of %d results: %v", len(there), want, v.err)
		case <-ctx.Done():
			t.Fatalf("%d results; want %d", len(there), want)
		}
	}
}

// reap reads every result.
func (s *site) reap(t *testing.T, peak int, took time.Duration) {
	t.Helper()
	ends := map[string]int{}
	for n := range *soak {
		r, err := s.read(fmt.Sprint("soak-", n))
		if err != nil {
			t.Fatal(err)
		}
		ends[strings.TrimSpace(fmt.Sprint(r.Status, " ", r.Error.Kind))]++
	}
	if peak > soakMemory {
		t.Errorf("the daemon had %d KiB; want at most %d", peak, soakMemory)
	}
	t.Logf("soak of %d tasks, %d restarts: %v, %.0f s, %.0f tasks/s, largest daemon %d KiB",
		*soak, restarts, ends, took.Seconds(), float64(*soak)/took.Seconds(), peak)
}
