package dispatch

// An overseer has answers reviewed by the overseers of their agents.
type overseer struct {
	*base
	delegator *delegator
}
