// Package outbox shows what became of tasks: result files, callbacks, and messages to
// requesters and agents. It shows nothing before the ledger has it.
package outbox
