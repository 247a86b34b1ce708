//go:build !faults

package fault

// Point marks the moment after a durable step of that name. It does nothing,
// and the compiler leaves it out.
func Point(string) {}

// Boot returns the id of the machine's boot as it is.
func Boot(id string) string { return id }
