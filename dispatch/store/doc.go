// Package store reads tasks from the ledger, judges them, and changes them as the core decides.
// A change is durable before the next step begins.
package store
