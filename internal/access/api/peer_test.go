package api_test

import (
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/access/api"
)

// Go interrupts its own threads with SIGURG, and poll(2) then returns EINTR.
func TestACallerIsAliveAlthoughSignalsInterruptTheLook(t *testing.T) {
	done := make(chan struct{})
	var signals sync.WaitGroup
	for range 4 {
		signals.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = unix.Kill(os.Getpid(), unix.SIGURG)
				}
			}
		})
	}
	alive, err := api.StaysAlive(20_000)
	close(done)
	signals.Wait()
	if err != nil || !alive {
		t.Errorf("alive = %t, %v; want true", alive, err)
	}
}
