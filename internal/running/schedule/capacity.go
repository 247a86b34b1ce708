package schedule

// HasRoom reports whether intake may continue; if not, Room is signalled later.
func (q *Queue) HasRoom() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = q.length+q.blocked >= q.size
	return !q.paused
}

// Room is signalled when the queue has room again after HasRoom has returned false.
func (q *Queue) Room() <-chan struct{} { return q.room }

// AddBlocked counts a waiting task that isn't an item, so that intake pauses for it too.
// RemoveBlocked undoes it.
func (q *Queue) AddBlocked() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.blocked++
}

// RemoveBlocked undoes AddBlocked.
func (q *Queue) RemoveBlocked() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.blocked--
	q.signalRoom()
}

// signalRoom lets a paused intake continue. The caller holds mu.
func (q *Queue) signalRoom() {
	if q.paused && q.length+q.blocked < q.size {
		q.paused = false
		select {
		case q.room <- struct{}{}:
		default: // one signal is enough
		}
	}
}
