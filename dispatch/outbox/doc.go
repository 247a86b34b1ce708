// Package outbox publishes what has happened: result files, callbacks, and the messages to
// requesters and agents. It also cancels tasks. It publishes nothing before the ledger has
// recorded it.
package outbox
