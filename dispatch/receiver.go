package dispatch

// A receiver takes messages in.
type receiver struct {
	*base
	acceptor   *acceptor
	delegator  *delegator
	completion *completion
}
