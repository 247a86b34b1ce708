// Package fault marks the places at which the program may be killed to see
// whether it loses anything. In an ordinary build the marks are nothing at all;
// the build tag "faults" makes them real.
package fault
