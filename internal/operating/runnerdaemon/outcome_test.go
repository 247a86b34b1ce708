package runnerdaemon

import (
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"mailboxd/internal/decisions/fleet"
)

func TestAnOutcomeThatCannotBeReadIsReadAgainUntilItIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, err := openJournal(filepath.Join(t.TempDir(), "journal.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer j.close()
		d := &daemon{journal: j, linked: make(chan struct{}), ofRuns: t.Context()}
		d.Log = zerolog.Nop()
		close(d.linked)
		one := newRun(t.Context(), fleet.Job{Token: "1-1-1-1-r"}) // the journal can't return it
		over := false
		var delivering sync.WaitGroup
		delivering.Go(func() { d.deliver(one); over = true })
		synctest.Wait()
		if over {
			t.Error("the outcome is not delivered any more")
		}
		close(one.settled)
		delivering.Wait()
	})
}
