// Package outbox shows what has happened: result files, callbacks, and the messages to
// requesters and agents. It also cancels tasks. It shows nothing before the ledger has it.
package outbox
