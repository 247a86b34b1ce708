package outbox

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"mailboxd/mailbox"
)

// The mark that a callback was made may fail to be written, and is tried again.
func TestACallbackIsNotRepeatedBeforeTheLedgerHasThatItWasMade(t *testing.T) {
	c := newCallbacks()
	made, broken := 0, errors.New("there is a directory")
	all := map[string]func() error{
		"callback.file_append": func() error { return broken },
		"callback.queue":       func() error { made++; return nil },
	}
	if err := c.make(1, all); !errors.Is(err, broken) {
		t.Errorf("make = %v; want the error of the one that failed", err)
	}
	broken = nil
	for range 2 {
		if err := c.make(1, all); err != nil {
			t.Errorf("make = %v; want nil", err)
		}
	}
	if made != 1 {
		t.Errorf("made %d times; want once until it is forgotten", made)
	}
	c.forget(1)
	if err := c.make(1, all); err != nil || made != 2 {
		t.Errorf("make of what was forgotten = %v, made %d times; want it made again", err, made)
	}
}

func TestOnlyACallbackThatCannotPassIsAbandoned(t *testing.T) {
	obstacle := error(&mailbox.UnfitError{})
	for name, c := range map[string]struct {
		queue, file error // of the two callbacks
		want        int   // after so many attempts; 0: never
	}{
		"an obstacle":             {nil, obstacle, maxAttempts},
		"two obstacles":           {obstacle, obstacle, maxAttempts},
		"no permission":           {nil, syscall.EACCES, maxAttempts},
		"a name that is too long": {nil, syscall.ENAMETOOLONG, 1},
		"a full disk":             {nil, syscall.ENOSPC, 0},
		"a busy device":           {nil, syscall.EBUSY, 0},
		"a mailbox that is gone":  {nil, fs.ErrNotExist, 0},
		"an obstacle and no room": {obstacle, syscall.ENOSPC, 0},
		"no room and an obstacle": {syscall.ENOSPC, obstacle, 0},
	} {
		t.Run(name, func(t *testing.T) {
			calls, after := newCallbacks(), 0
			for n := 1; n <= 3*maxAttempts && after == 0; n++ {
				failAt(calls, c.queue, c.file)
				if calls.exhausted(1) {
					after = n
				}
			}
			if after != c.want {
				t.Errorf("exhausted after %d attempts; want %d, 0 for never", after, c.want)
			}
		})
	}
}

// A callback may be exhausted when the ledger cannot record that.
func TestACallbackThatMayPassNowIsTriedAgain(t *testing.T) {
	calls := newCallbacks()
	for range maxAttempts {
		failAt(calls, nil, &mailbox.UnfitError{})
	}
	failAt(calls, nil, syscall.ENOSPC)
	if calls.exhausted(1) {
		t.Error("exhausted by a full disk; want it tried again")
	}
	if failAt(calls, nil, &mailbox.UnfitError{}); !calls.exhausted(1) {
		t.Error("not exhausted by the next obstacle")
	}
}

func TestResumedCallbacksAreTriedAsOftenAsBefore(t *testing.T) {
	calls := newCallbacks()
	calls.resume(1) // of which nothing is known
	for range 2 {
		for range maxAttempts - 1 {
			failAt(calls, nil, &mailbox.UnfitError{})
		}
		if calls.exhausted(1) {
			t.Fatal("exhausted too early")
		}
		if failAt(calls, nil, &mailbox.UnfitError{}); !calls.exhausted(1) {
			t.Fatal("not exhausted")
		}
		calls.abandon(1)
		if calls.resume(1); calls.isAbandoned(1) || calls.failures(1) != 0 {
			t.Fatalf("abandoned %t after %d failures; want neither", calls.isAbandoned(1), calls.failures(1))
		}
	}
}

func TestAResumeBeforeTheLastAttemptBeginsANewRound(t *testing.T) {
	calls := newCallbacks()
	for range 2 {
		for range maxAttempts - 1 {
			failAt(calls, nil, &mailbox.UnfitError{})
		}
		if calls.exhausted(1) {
			t.Fatal("exhausted too early")
		}
		calls.resume(1)
	}
}

// failAt makes two callbacks, which return errors.
func failAt(c *Callbacks, queue, file error) {
	all := map[string]func() error{}
	for name, err := range map[string]error{"callback.queue": queue, "callback.file_append": file} {
		all[name] = func() error {
			if err == nil {
				return nil
			}
			return fmt.Errorf("append: %w", err)
		}
	}
	_ = c.make(1, all)
}
