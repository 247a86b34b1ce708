// Package envelope holds the words of the mailbox: what a task, a result and
// an agent manifest say. Whatever it has decoded is complete and safe to use;
// whatever it refuses comes back with findings that name the field.
package envelope
