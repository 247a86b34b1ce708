// Package fleet holds the protocol between the owner of a mailbox and the runners of other machines: its
// messages, and the state machines Owner and Runner. The owner has the ledger. A runner executes what the
// owner assigns to it. A token names one assignment of one attempt.
//
// The state machines reach no clock, file, network or lock. A call gets the time as a value, and returns
// duties that the caller carries out. What a duty says to write is durable before the caller reports it.
//
// Three rules keep an attempt from being begun twice. A runner takes a job only while the claim that it
// answers is pending. A token that the runner doesn't list is voided: the task starts afresh only after the
// runner has written that it will never begin the token. A lease ends at the runner before it ends at the
// owner: the runner counts from the time when it sent a report, the owner from the time when it received it.
package fleet
