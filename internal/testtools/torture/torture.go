// Package torture kills the daemon again and again and checks what it promised.
// It has no code but its tests: a daemon built with fault points, writers and
// agents that behave badly, SIGKILL at random instants and at every durable
// step, and then a look at what other programs see. Run it for as long as you
// like; it prints the seed it used and what it did:
//
//	go test ./internal/testtools/torture -torture=10m
package torture
