package schedule

import "testing"

// wantRoom takes the signal of room, if there is one.
func wantRoom(t *testing.T, q *Queue, want bool, when string) {
	t.Helper()
	signalled := false
	select {
	case <-q.Room():
		signalled = true
	default:
	}
	if signalled != want {
		t.Errorf("room signalled %s: %t; want %t", when, signalled, want)
	}
}

// A task that waits for a person takes as much room as one in the queue.
func TestBlockedTasksPauseIntakeAndItContinuesBelowTheSize(t *testing.T) {
	q := NewQueue(9, 3, 0, limitOf(9))
	q.Push(an(1, "a", "x"))
	q.AddBlocked()
	if !q.HasRoom() {
		t.Error("HasRoom = false with 2 of 3; want true")
	}
	q.AddBlocked()
	if q.HasRoom() {
		t.Error("HasRoom = true with one waiting and two blocked of 3; want false")
	}
	q.AddBlocked()
	q.RemoveBlocked()
	wantRoom(t, q, false, "with 3 of 3")
	q.RemoveBlocked()
	wantRoom(t, q, true, "with 2 of 3")
	if !q.HasRoom() {
		t.Error("HasRoom = false after the signal; want true")
	}
	q.RemoveBlocked()
	wantRoom(t, q, false, "while intake isn't paused")
}
