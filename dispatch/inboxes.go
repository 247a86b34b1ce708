package dispatch

import "mailboxd/internal/schedule"

// The inboxes have the tasks that agents fetch.
type inboxes struct {
	*base
	placed   *placedResults
	executor *executor
	inboxes  *schedule.DeliveryQueue // tasks to deliver to the inboxes of their agents
	waits    *budgetWaiters
}
