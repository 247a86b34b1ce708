// Package envelope reads and writes the objects of the mailbox: tasks, results and agent
// manifests. A decoded object is complete and safe to use; a refused one comes with findings
// that name the field.
package envelope
