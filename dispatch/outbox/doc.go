//  result files, callbacks, and the messages to
// requesters and agents. It shows nothing before the ledger has it.
package outbox
