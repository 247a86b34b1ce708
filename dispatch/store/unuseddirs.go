package store

import "sync"

// UnusedDirs are the empty run directories whose intent the ledger failed to record. Each stays
// in place, since that intent may be on the disk nevertheless, and the next intent of the same
// attempt uses it.
type UnusedDirs struct {
	mu    sync.Mutex // guards paths
	paths map[string]bool
}

func newUnusedDirs() *UnusedDirs { return &UnusedDirs{paths: map[string]bool{}} }

// Keep adds a directory; "" is none.
func (u *UnusedDirs) Keep(path string) {
	if path == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.paths[path] = true
}

// Take removes a directory from the set, and reports whether it was there.
func (u *UnusedDirs) Take(path string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	found := u.paths[path]
	delete(u.paths, path)
	return found
}

// Has reports whether a directory is in the set.
func (u *UnusedDirs) Has(path string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.paths[path]
}
