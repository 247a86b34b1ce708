package dispatch

// A completion takes the outcome of a run to where that leads its task.
type completion struct {
	*base
	delegator *delegator
	overseer  *overseer
	kin       *kin
}
