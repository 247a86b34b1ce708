//go:build !race

package slowtest

// withRace reports whether the race detector is part of the test.
const withRace = false
