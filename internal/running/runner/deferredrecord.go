package runner

import "context"

// Most runs end within milliseconds, and the daemon stores their end a moment later. So the
// keeper writes no record of such a run if it has nothing else to report. It keeps the end
// in memory until its client says that the end is stored, and writes it if the client
// disconnects before that.

// deferRecord leaves the end of a run to its client, if that is connected.
func (k *keeper) deferRecord(l *connection, r *hostedRun) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.clients[l] {
		return false
	}
	r.client = l
	k.unwritten[r.file.dir] = r
	delete(k.runs, r.file.dir)
	return true
}

// stored removes runs whose ends clients have stored.
func (k *keeper) stored(dirs []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, dir := range dirs {
		delete(k.unwritten, dir)
	}
}

// removeClient removes a disconnected client. It writes the ends that the client hasn't
// stored, and the keeper stays until then.
func (k *keeper) removeClient(ctx context.Context, l *connection) {
	var unwritten []*hostedRun
	k.update(func() {
		delete(k.clients, l)
		for dir, r := range k.unwritten {
			if r.client == l {
				unwritten = append(unwritten, r)
				k.runs[dir] = r
				delete(k.unwritten, dir)
			}
		}
	})
	for _, r := range unwritten {
		if r.file.finish(r.exit) != nil {
			r.retryRecord(ctx)
		}
		k.removeRun(r.file.dir)
	}
}

// removeRun removes the run in a directory.
func (k *keeper) removeRun(dir string) {
	k.update(func() { delete(k.runs, dir) })
}

// Forget says that the caller has stored the end of the run in dir, so the keeper needn't
// write it. The keeper learns it with the next run.
func (k *Keepers) Forget(dir string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unwritten[dir] {
		delete(k.unwritten, dir)
		k.known = append(k.known, dir)
	}
}

// noteUnwritten notes a run whose end isn't written.
func (k *Keepers) noteUnwritten(l *connection, dir string) {
	if !l.unwritten {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unwritten[dir] = true
}

// takeKnown returns the runs that the keeper may forget.
func (k *Keepers) takeKnown() (known []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, k.known = k.known, nil
	return known
}
