package dispatch

// hasRoom reports whether intake may go on; if not, room is signalled later.
func (q *queue) hasRoom() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = q.length+q.parked >= q.size
	return !q.paused
}

// park counts a task as waiting that is none of the items, so that intake
// pauses for it too; unpark ends that.
func (q *queue) park() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.parked++
}

func (q *queue) unpark() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.parked--
	q.signalRoom()
}

// signalRoom tells intake that it may go on, if it paused. The caller holds mu.
func (q *queue) signalRoom() {
	if q.paused && q.length+q.parked < q.size {
		q.paused = false
		select {
		case q.room <- struct{}{}:
		default: // one signal is enough
		}
	}
}
