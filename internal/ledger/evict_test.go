package ledger

import (
	"fmt"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/index"
	"mailboxd/internal/task"
)

// What evict does is in proportion to what was settled, not to what is open.
func TestEvictLooksAtWhatWasSettledSince(t *testing.T) {
	b := newBase()
	put := func(seq, parent int64, n uint64, settled bool) {
		e := &entry{Task: index.Task{Task: task.Task{Seq: seq, ID: envelope.ID(fmt.Sprint(seq)), Revision: 1, Latest: true, State: task.Queued, Parent: parent}}, n: n}
		if settled {
			e.State, e.Put, e.Delivered = task.Done, true, true
		}
		b.set(e)
	}
	check := func(what string, upTo uint64, looked, left int) {
		t.Helper()
		if got := b.evict(upTo); got != looked || len(b.tasks) != left {
			t.Errorf("%s: looked at %d tasks, and %d are left; want %d and %d", what, got, len(b.tasks), looked, left)
		}
	}
	for seq := range int64(1000) {
		put(seq+1, 0, 1, false)
	}
	check("nothing settled", 1, 0, 1000)
	put(1, 0, 5, true)
	put(2, 0, 9, true)
	check("one is not in the index", 5, 2, 999)
	check("now it is", 9, 1, 998)
	put(3, 1000, 10, true)
	check("its parent is open", 10, 1, 998)
	check("and is not looked at again", 11, 0, 998)
	put(1000, 0, 12, true)
	check("its parent has ended", 12, 2, 996)
	put(4, 0, 13, true)
	put(4, 0, 14, false)
	check("it was changed again", 14, 1, 996)
}
