package schedule

// Reserve takes the slots for an item that is not in the queue yet, unless others
// would come first.
func (q *Queue) Reserve(it Item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.length+len(q.prefetch.waiting) > 0 || !q.hasSlot(it.Agent) || !q.requesterHasSlot(it.Requester) {
		return false
	}
	q.occupy(it)
	q.count(it)
	q.reserved++
	return true
}

// PushBegun adds an item whose slots are reserved and which has begun. Take returns
// it also after the end of its context.
func (q *Queue) PushBegun(it Item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begun = append(q.begun, it)
	q.reserved--
	q.work.Signal()
}

// CancelReservation says that an item whose slots are reserved will not be pushed.
// Its slots go by Release.
func (q *Queue) CancelReservation() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reserved--
	q.work.Signal()
}
