package task

import "mailboxd/envelope"

// Run returns the ledger's record of the ended run of a task.
func (o Outcome) Run(of Task) Run {
	run := Run{
		Task: of.Seq, Attempt: of.Attempt,
		Started: o.Exit.Started, Finished: o.Exit.Finished,
		PID: o.Exit.PID, ExitCode: o.Exit.Code, Signal: o.Exit.Signal, Cause: o.Exit.Cause,
	}
	if cost := o.Result.Cost; cost != nil {
		run.Tokens = &cost.Tokens
		if !cost.Unpriced {
			run.USDCents = &cost.USDCents
		}
	}
	return run
}

// EndKind returns the kind of the event that ends a run.
func (o Outcome) EndKind() Kind {
	if o.Result.Error.Kind == envelope.Cancelled {
		return KindTaskCancelled
	}
	return KindTaskFinished
}

// NoAgentRan reports whether no agent contributed to the outcome.
func (o Outcome) NoAgentRan() bool {
	return o.Result.Status == envelope.Rejected && o.Exit.Started.IsZero() && o.Exit.Cause != CauseLost
}
