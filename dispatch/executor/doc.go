// Package executor starts the runs of queued tasks and takes their outcomes. It starts
// nothing before the intent is durable.
package executor
