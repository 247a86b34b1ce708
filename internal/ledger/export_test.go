package ledger

// Indexed reports whether the last write of the index did not fail.
func (l *Ledger) Indexed() bool {
	l.project.mu.Lock()
	defer l.project.mu.Unlock()
	return l.project.failed == nil
}
