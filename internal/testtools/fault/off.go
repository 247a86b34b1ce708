//go:build !faults

package fault

import "os"

// Point marks the moment after a durable step of that name. It does nothing,
// and the compiler leaves it out.
func Point(string) {}

// Synced marks the moment after a sync of that name, and of that file.
func Synced(string, *os.File) {}

// SyncedAt is Synced for the file at a path, which somebody else synced for us.
func SyncedAt(string, string) {}

// Removed notes that a name was taken out of a directory. It is no Point.
func Removed(*os.File, string) {}

// Boot returns the id of the machine's boot as it is.
func Boot(id string) string { return id }
