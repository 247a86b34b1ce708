// Package executor starts the runs of queued tasks and handles their outcomes. It starts no run
// before the intent is durable.
package executor
