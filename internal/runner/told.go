package runner

import "context"

// Most runs are over within milliseconds, and the daemon that is told has made
// it durable a moment later. So of one that has nothing else to tell the keeper
// writes nothing: it keeps the end in mind until its client says that this is
// remembered, and writes it down when the client is gone before that.

// entrust leaves the end of a run to the client that is about to be told of it,
// if that one is there.
func (k *keeper) entrust(l *line, r *kept) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.clients[l] {
		return false
	}
	r.client = l
	k.told[r.book.dir] = r
	delete(k.runs, r.book.dir)
	return true
}

// remembered lets go of the ends of runs that somebody else remembers.
func (k *keeper) remembered(dirs []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, dir := range dirs {
		delete(k.told, dir)
	}
}

// disown lets go of a client that is gone. The ends that it was entrusted with
// are written down, and until then the keeper stays.
func (k *keeper) disown(ctx context.Context, l *line) {
	var unwritten []*kept
	k.change(func() {
		delete(k.clients, l)
		for dir, r := range k.told {
			if r.client == l {
				unwritten = append(unwritten, r)
				k.runs[dir] = r
				delete(k.told, dir)
			}
		}
	})
	for _, r := range unwritten {
		if r.book.end(r.exit) != nil {
			r.record(ctx)
		}
		k.forget(r.book.dir)
	}
}

// forget says that there is nothing more to do for the run in a directory.
func (k *keeper) forget(dir string) {
	k.change(func() { delete(k.runs, dir) })
}

// Forget says that how the run in dir ended is remembered, so that our keeper need
// not write it down. It is told with the next run.
func (k *Keepers) Forget(dir string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unwritten[dir] {
		delete(k.unwritten, dir)
		k.known = append(k.known, dir)
	}
}

// remember notes whether the end of the run in dir is written.
func (k *Keepers) remember(l *line, dir string) {
	if !l.unwritten {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unwritten[dir] = true
}

// news lists the runs that the keeper may forget.
func (k *Keepers) news() (known []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, k.known = k.known, nil
	return known
}
