package schedule

// Reserve takes the slots for an item that isn't queued yet. It returns false if other
// items come first or no slot is free.
func (q *Queue) Reserve(it Item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.length > 0 || q.isRemote(it.Agent) || !q.hasSlot(it.Agent) || !q.requesterHasSlot(it.Requester) {
		return false
	}
	q.occupy(it)
	q.reserved++
	return true
}

// PushBegun adds a begun item with reserved slots. Take returns it even after the end of
// its context.
func (q *Queue) PushBegun(it Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begun = append(q.begun, it)
	q.reserved--
	q.work.Signal()
}

// CancelReservation says that an item with reserved slots won't be pushed. Release frees
// the slots.
func (q *Queue) CancelReservation() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reserved--
	q.work.Signal()
}
