package dispatch

import (
	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/executor"
	"mailboxd/dispatch/outbox"
	"mailboxd/internal/schedule"
)

// The inboxes have the tasks that agents fetch.
type inboxes struct {
	*outbox.Base
	placed     *exchange.PlacedResults
	executor   *executor.Executor
	deliveries *schedule.DeliveryQueue // tasks to deliver to the inboxes of their agents
	waits      *executor.BudgetWaiters
}
