package outbox

import (
	"errors"
	"testing"
)

// The mark that a callback was made may fail to be written, and is tried again.
func TestACallbackIsNotRepeatedBeforeTheLedgerHasThatItWasMade(t *testing.T) {
	c := newCalls()
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
