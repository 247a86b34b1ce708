// Package core decides what happens to a task. It reads no clock, file or database:
// the same state, command and time always give the same events.
//
//	Decide(state, command, now) -> events     changes nothing
//	Apply(state, event)                       decides nothing
//
// A caller loads the tasks of a command into a State, calls Decide, makes the events
// durable and applies them. A State may hold all open tasks, or only those of one
// command. The command carries facts from outside, such as the verdict of policy, and
// the task as it was when they were gathered. If the task has changed since, Decide
// returns ErrStale, and the caller gathers the facts again.
package core
