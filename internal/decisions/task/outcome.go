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

// EndData returns the data of the event that ends a run.
func (o Outcome) EndData() map[string]any {
	data := map[string]any{"status": o.Result.Status, "exit_code": o.Exit.Code, "took_ms": o.Exit.Wall.Milliseconds()}
	if level := o.Result.Output.Enforcement[envelope.ControlFilesystem]; level != "" {
		data["sandbox"] = string(level)
	}
	if o.Patch != "" {
		data[PatchDigest] = o.Patch
	}
	if len(o.Published) > 0 {
		digests := make([]string, len(o.Published))
		for i, a := range o.Published {
			digests[i] = a.Digest
		}
		data["artifacts"] = digests
	}
	if o.Result.Error != (envelope.Error{}) {
		data["error"] = o.Result.Error.Kind
		data["message"] = o.Result.Error.Message
		if code := o.Result.Error.Code; code != "" {
			data["code"] = code
		}
	}
	return data
}

// NoAgentRan reports whether no agent contributed to the outcome.
func (o Outcome) NoAgentRan() bool {
	return o.Result.Status == envelope.Rejected && o.Exit.Started.IsZero() && o.Exit.Cause != CauseLost
}
