package dispatch

import (
	"fmt"
	"testing"
)

// knownFault is a test of what does not work yet. It passes while show returns an
// error, and fails once show returns nil.
func knownFault(t *testing.T, sentence string, show func() error) {
	t.Helper()
	err := show()
	if err == nil {
		t.Fatalf("this fault is gone: make it an ordinary test: %s", sentence)
	}
	t.Logf("known fault: %s: %v", sentence, err)
}

func TestATakeLooksAtFewItemsHoweverManyABusyRequesterHas(t *testing.T) {
	knownFault(t, "a take visits every item of a requester who is at the limit", func() error {
		const many = 1000
		q := newQueue(9, many, 1, limitOf(9))
		q.push(an(1, "a", "greedy"))
		if _, ok := q.next(); !ok {
			t.Fatal("next = false; want the first item")
		}
		for seq := range int64(many) {
			q.push(an(seq+2, "a", "greedy"))
		}
		q.push(an(many+2, "a", "modest"))
		q.visited = 0
		if it, ok := q.next(); !ok || it.requester != "modest" {
			t.Fatalf("next = %+v, %v; want the task of modest", it, ok)
		}
		if q.visited > 10 {
			return fmt.Errorf("%d items visited for one take", q.visited)
		}
		return nil
	})
}
