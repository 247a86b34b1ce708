// Package task holds the types that the parts of mailboxd share: tasks, states, hold
// reasons and events. It reads no file and no clock.
//
// It also holds the sentences for event kinds and hold reasons, so that the command line
// and the documentation use the same words.
package task

import "slices"

// A State is the state of a task. The zero value is none.
type State string

// The states, in the order of a task's life cycle.
const (
	Received State = "received" // accepted, behind an earlier revision
	Held     State = "held"     // not allowed to start, for its Reasons
	Queued   State = "queued"   // may start
	Running  State = "running"  // its run has begun or is about to begin
	Waiting  State = "waiting"  // in the inbox of an agent that fetches its tasks
	Review   State = "review"   // answered; an approver or overseer must approve the answer
	Done     State = "done"     // final
)

// States lists every State, in the order of a task's life cycle.
func States() []State {
	return []State{Received, Held, Queued, Running, Waiting, Review, Done}
}

// A Kind is the kind of an Event. Kinds are public in the control socket's event stream, so
// their names do not change.
type Kind string

// The kinds.
const (
	KindTaskAccepted          Kind = "task.accepted"
	KindTaskRejected          Kind = "task.rejected"
	KindTaskDuplicate         Kind = "task.duplicate"
	KindTaskDuplicateConflict Kind = "task.duplicate_conflict"
	KindTaskSuperseded        Kind = "task.superseded"
	KindTaskResubmitted       Kind = "task.resubmitted"
	KindTaskHeld              Kind = "task.held"
	KindTaskReleased          Kind = "task.released"
	KindTaskNoticed           Kind = "task.noticed"
	KindTaskQueued            Kind = "task.queued"
	KindTaskStarted           Kind = "task.started"
	KindTaskWaiting           Kind = "task.waiting"
	KindTaskClaimed           Kind = "task.claimed"
	KindTaskProgress          Kind = "task.progress"
	KindTaskDelegated         Kind = "task.delegated"
	KindTaskResumed           Kind = "task.resumed"
	KindTaskRetried           Kind = "task.retried"
	KindTaskPutBack           Kind = "task.put_back"
	KindTaskCancelled         Kind = "task.cancelled"
	KindTaskFinished          Kind = "task.finished"

	KindLeaseExpired Kind = "lease.expired"

	KindRunAssigned    Kind = "run.assigned"
	KindRunUnreachable Kind = "run.unreachable"
	KindRunReachable   Kind = "run.reachable"
	KindRunVoided      Kind = "run.voided"
	KindRunFenced      Kind = "run.fenced"

	KindWorktreeApplied   Kind = "worktree.applied"
	KindWorktreeDiscarded Kind = "worktree.discarded"

	KindRoutingDecided Kind = "routing.decided"
	KindRoutingFailed  Kind = "routing.failed"

	KindSandboxRefused Kind = "sandbox.refused"

	KindBudgetReserved Kind = "budget.reserved"
	KindBudgetSettled  Kind = "budget.settled"
	KindBudgetExceeded Kind = "budget.exceeded"

	KindApprovalAsked    Kind = "approval.asked"
	KindApprovalApproved Kind = "approval.approved"
	KindApprovalDenied   Kind = "approval.denied"
	KindApprovalExpired  Kind = "approval.expired"
	KindApprovalVoid     Kind = "approval.void"
	KindApprovalRefused  Kind = "approval.refused"
	KindToolUnasked      Kind = "tool.unasked"
	KindToolCalled       Kind = "tool.called"
	KindToolRefused      Kind = "tool.refused"
	KindToolChanged      Kind = "tool.changed"

	KindOversightAsked    Kind = "oversight.asked"
	KindOversightAnswered Kind = "oversight.answered"
	KindOversightInquired Kind = "oversight.inquired"
	KindOversightApproved Kind = "oversight.approved"
	KindOversightRejected Kind = "oversight.rejected"
	KindOversightExpired  Kind = "oversight.expired"

	KindResultAdopted  Kind = "result.adopted"
	KindResultInvalid  Kind = "result.invalid"
	KindResultRefused  Kind = "result.refused"
	KindResultConflict Kind = "result.conflict"

	KindCallbackFailed       Kind = "callback.failed"
	KindCallbackAbandoned    Kind = "callback.abandoned"
	KindContextDegraded      Kind = "context.degraded"
	KindMessageReceived      Kind = "message.received"
	KindMessageOwn           Kind = "message.own"
	KindMessageDuplicate     Kind = "message.duplicate"
	KindMessageUnknownSender Kind = "message.unknown_sender"
	KindLineRejected         Kind = "line.rejected"
	KindSignatureRefused     Kind = "signature.refused"
	KindFileGone             Kind = "file.gone"
	KindAgentPaused          Kind = "agent.paused"
	KindAgentResumed         Kind = "agent.resumed"
	KindRunnerRefused        Kind = "runner.refused"
	KindRunnerDrained        Kind = "runner.drained"
	KindRunnerResumed        Kind = "runner.resumed"
	KindRunnerRemoved        Kind = "runner.removed"
	KindControlRefused       Kind = "control.refused"
	KindLedgerLost           Kind = "ledger.lost"
	KindLedgerRestored       Kind = "ledger.restored"
	KindLedgerRecovered      Kind = "ledger.recovered"
)

// kindWords are the texts about one Kind.
type kindWords struct {
	kind     Kind
	sentence string
	short    string // beside the kind's name in a list; "" if the name is enough
}

// kinds has the texts of every Kind, in the order of the constants.
var kinds = []kindWords{
	{KindTaskAccepted, "The daemon read the task and recorded it.", ""},
	{KindTaskRejected, "The task was refused.", ""},
	{KindTaskDuplicate, "The task came again with the same content and was ignored.", "same id and content as before: ignored"},
	{KindTaskDuplicateConflict, "The task came again with other content and was refused.", "same id, different content: refused"},
	{KindTaskSuperseded, "A later revision replaced the task before it started.", "replaced by a later revision before it started"},
	{KindTaskResubmitted, "An operator asked for another run of the task, as a new revision.", ""},
	{KindTaskHeld, "The task is held until its reasons are gone.", ""},
	{KindTaskReleased, "An operator released the task.", ""},
	{KindTaskNoticed, "A person was notified that the task waits for one.", ""},
	{KindTaskQueued, "The task may start as soon as a slot is free.", ""},
	{KindTaskStarted, "The task was given to its agent.", "given to its agent"},
	{KindTaskWaiting, "The task waits in the inbox of its agent.", "in the inbox of its agent"},
	{KindTaskClaimed, "A program claimed the task for its agent.", "fetched for its agent"},
	{KindTaskProgress, "The agent reported progress.", "its agent reports"},
	{KindTaskDelegated, "The agent asked for another task.", "its agent asked for another task"},
	{KindTaskResumed, "The task continues, because its agent got the reply or the results that it waited for.", ""},
	{KindTaskRetried, "The attempt failed and another one follows.", "another attempt follows"},
	{KindTaskPutBack, "The run does not count, because its agent needs a login or its provider reached a limit.", "the run does not count"},
	{KindTaskCancelled, "The task was cancelled.", ""},
	{KindTaskFinished, "The work on the task ended.", ""},
	{KindLeaseExpired, "The program that claimed the task did not answer in time.", "its claim ended without an answer"},
	{KindRunAssigned, "A runner got the run.", "a runner got it"},
	{KindRunUnreachable, "The runner that has the run can't be reached.", "its runner can't be reached"},
	{KindRunReachable, "The runner that has the run can be reached again.", "its runner can be reached again"},
	{KindRunVoided, "The runner has not begun the run, and never will.", "its runner never began it"},
	{KindRunFenced, "An answer of a runner came after the end of its run, and was kept for review only.", "a late answer was kept for review"},
	{KindWorktreeApplied, "A person applied the work of the task to the repository that it began from.", ""},
	{KindWorktreeDiscarded, "A person discarded the work of the task, which can't be applied any more.", ""},
	{KindRoutingDecided, "The agent of the task was chosen.", "its agent was chosen"},
	{KindRoutingFailed, "No agent can do the task.", "no agent can do it"},
	{KindSandboxRefused, "The agent tried to reach hosts that the network list of its sandbox does not have.", "hosts outside of its network list"},
	{KindBudgetReserved, "The budget of the run was reserved.", ""},
	{KindBudgetSettled, "The cost of the run was recorded, and its reservation ended.", ""},
	{KindBudgetExceeded, "The run spent more than its budget.", "over its budget"},
	{KindApprovalAsked, "A person was asked for approval.", "a person was asked"},
	{KindApprovalApproved, "A person approved the task, or its answer.", ""},
	{KindApprovalDenied, "A person denied the task, or its answer.", ""},
	{KindApprovalExpired, "Nobody decided in time, or the approval was not used in time.", "no decision in time"},
	{KindApprovalVoid, "The approval ended, because it is not needed any more or its subject changed.", "the subject of the approval changed"},
	{KindApprovalRefused, "A person or process that may not decide about the task tried to.", "the approver may not decide"},
	{KindToolUnasked, "The agent called a tool without asking.", ""},
	{KindToolCalled, "The agent called a tool of an MCP server through mailboxd.", ""},
	{KindToolRefused, "A call of a tool of an MCP server was refused, and not sent.", "a call of a tool was refused"},
	{KindToolChanged, "The definition of a tool of an MCP server isn't the one that was used before.", "a tool has changed"},
	{KindOversightAsked, "The overseer was asked to review the answer.", "its overseer was asked"},
	{KindOversightAnswered, "The agent replied to its overseer and kept its answer.", "its overseer has answered"},
	{KindOversightInquired, "The overseer sent the task back to its agent with a question.", "sent back to its agent"},
	{KindOversightApproved, "The overseer approved the answer.", "may be shown"},
	{KindOversightRejected, "The overseer rejected the answer, so it is not shown.", "is not shown"},
	{KindOversightExpired, "The overseer made no decision, so the answer is not shown.", "is not shown"},
	{KindResultAdopted, "A result file that mailboxd did not write was taken as the answer.", "a result file of another program was taken as the answer"},
	{KindResultInvalid, "The file at the path of the result is not a valid result for the task.", "the file at the path of its result is not a valid result"},
	{KindResultRefused, "A result file was moved away, because the task needs an approval.", "a result file was moved away: its task needs an approval"},
	{KindResultConflict, "A file of another program is at the path of the result, and was left there.", "a file of another program is at the path of its result"},
	{KindCallbackFailed, "The result could not be delivered to its callback.", "the result could not be delivered to its callback"},
	{KindCallbackAbandoned, "The daemon stopped trying to deliver the result to its callback.", "no further attempt before a release or a restart"},
	{KindContextDegraded, "The context of the task is missing, so the inline text is used.", "the context is missing, so the inline text is used"},
	{KindMessageReceived, "A message was recorded, such as news, a question, a reply or a cancellation.", ""},
	{KindMessageOwn, "A line that mailboxd itself wrote was ignored.", ""},
	{KindMessageDuplicate, "A message came again with the same content and was ignored.", ""},
	{KindMessageUnknownSender, "A message about the task came from a sender that is not known.", "a message from an unknown sender"},
	{KindLineRejected, "A line that names no task was refused.", ""},
	{KindSignatureRefused, "A message was refused, since its signature is missing, wrong or expired.", ""},
	{KindFileGone, "A task file is gone, and lines of it may not have been read.", "a task file is gone, and some of its lines may not have been read"},
	{KindAgentPaused, "An agent, or every agent, was paused.", ""},
	{KindAgentResumed, "The pause of an agent, or of every agent, ended.", ""},
	{KindRunnerRefused, "A runner isn't served any more, for the reason in the event.", ""},
	{KindRunnerDrained, "A person lets a runner get no new tasks.", ""},
	{KindRunnerResumed, "A person lets a runner get tasks again.", ""},
	{KindRunnerRemoved, "A person had a runner forgotten, with what it announced.", ""},
	{KindControlRefused, "A caller without the right to change anything tried to.", ""},
	{KindLedgerLost, "The ledger was missing or could not be read, and a new one was started.", ""},
	{KindLedgerRestored, "The mailbox was restored from a backup, and every open task was held.", ""},
	{KindLedgerRecovered, "Every line from before the loss of the ledger, or from after the backup, was read again.", ""},
}

// EventKinds lists every Kind.
func EventKinds() []Kind {
	all := make([]Kind, len(kinds))
	for i, k := range kinds {
		all[i] = k.kind
	}
	return all
}

// Sentence says what happened; "" for an unknown kind.
func (k Kind) Sentence() string { return k.words().sentence }

// Short says what happened in a few words, for a list with the kind's name; "" if the name
// is enough.
func (k Kind) Short() string { return k.words().short }

func (k Kind) words() kindWords {
	at := slices.IndexFunc(kinds, func(w kindWords) bool { return w.kind == k })
	if at < 0 {
		return kindWords{}
	}
	return kinds[at]
}
