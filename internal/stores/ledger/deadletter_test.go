package ledger_test

import (
	"fmt"
	"testing"

	"mailboxd/internal/stores/ledger"
)

func TestDeadLettersAreReadInOrderWithinABoundOfBytesUntilTheyAreDropped(t *testing.T) {
	l := open(t)
	update(t, l, func(tx *ledger.Tx) error {
		for n := range 5 {
			tx.AddDeadLetter(fmt.Appendf(nil, "letter %d", n))
		}
		return nil
	})
	for _, want := range []int{2, 2, 1, 0} {
		letters, err := l.DeadLetters(t.Context(), 2*len("letter 0"))
		if err != nil || len(letters) != want {
			t.Fatalf("DeadLetters = %d letters, %v; want %d", len(letters), err, want)
		}
		if want > 0 {
			update(t, l, func(tx *ledger.Tx) error { return tx.DropDeadLetters(letters[want-1].Seq) })
		}
	}
	update(t, l, func(tx *ledger.Tx) error { tx.AddDeadLetter([]byte("larger than the bound")); return nil })
	if letters, err := l.DeadLetters(t.Context(), 1); err != nil || len(letters) != 1 {
		t.Errorf("DeadLetters = %d letters, %v; want 1", len(letters), err)
	}
}
