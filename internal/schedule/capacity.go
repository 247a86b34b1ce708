package schedule

// HasRoom reports whether intake may go on; if not, Room is signalled later.
func (q *Queue) HasRoom() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = q.length+q.blocked >= q.size
	return !q.paused
}

// Room is signalled when the queue has room again after HasRoom has returned false.
func (q *Queue) Room() <-chan struct{} { return q.room }

// AddBlocked counts a task as waiting that is none of the items, so that intake
// pauses for it too. RemoveBlocked ends that.
func (q *Queue) AddBlocked() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.blocked++
}

// RemoveBlocked ends what AddBlocked began.
func (q *Queue) RemoveBlocked() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.blocked--
	q.signalRoom()
}

// signalRoom tells intake that it may go on, if it paused. The caller holds mu.
func (q *Queue) signalRoom() {
	if q.paused && q.length+q.blocked < q.size {
		q.paused = false
		select {
		case q.room <- struct{}{}:
		default: // one signal is enough
		}
	}
}
