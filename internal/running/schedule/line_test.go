package schedule

import "testing"

func TestALineThatHasBecomeShortFreesItsMemory(t *testing.T) {
	const many = 16 * fewItems
	l := &line{items: make([]waitingItem, many)}
	for range many - fewItems {
		l.removeFirst()
	}
	if got := len(l.waiting()); got != fewItems || cap(l.items) > many/4 {
		t.Errorf("%d items wait in memory for %d; want %d in memory for few", got, cap(l.items), fewItems)
	}
}
