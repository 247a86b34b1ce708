// Package task holds the types that the parts of mailboxd share: tasks, states, hold
// reasons and events. It reads no file and no clock.
//
// It also holds the sentences for event kinds and hold reasons, so that the command line
// and the documentation use the same words.
package task

import (
	"slices"
	"strings"
)

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

// A Reason is why a task is held.
type Reason string

// The reasons. Each comment says what ends the hold.
const (
	Approval      Reason = "approval"       // an approver's decision
	ChangeWindow  Reason = "change_window"  // the start of the window
	Capacity      Reason = "capacity"       // free budget, or the end of a pause before another attempt
	Paused        Reason = "paused"         // resume
	Operator      Reason = "operator"       // release
	Recovered     Reason = "recovered"      // release; the ledger was lost, so the task may have run
	AuthRequired  Reason = "auth_required"  // the agent's login
	AnswerUnread  Reason = "answer_unread"  // release: the agent's answer is read again
	ResultInvalid Reason = "result_invalid" // the removal of an invalid result file
	Children      Reason = "children"       // the end of the tasks that it needs
	Reply         Reason = "reply"          // a message to its agent
)

// reasonWords are the texts about one Reason.
type reasonWords struct {
	reason   Reason
	sentence string
	remedy   string // what a person can do; "" for nothing
	needs    string // follows "waits for" in a list of tasks
	awaits   string // follows "waits for" in a conversation
}

// reasons has the texts of every Reason, in the order of the constants.
var reasons = []reasonWords{
	{Approval, "A person has to approve it.", "mailboxd approve", "approval", "approval"},
	{ChangeWindow, "Its change window has not begun.", "", "its change window, open", "its change window"},
	{Capacity, "It waits for the end of the pause before its next attempt, or for what other runs leave of its budget.", "",
		"its next attempt", "a pause before the next attempt"},
	{Paused, "Its agent is paused.", "mailboxd resume", "resume: its agent is paused", "its agent, which is paused"},
	{Operator, "An operator holds it.", "mailboxd release", "release by an operator", "an operator"},
	{Recovered, "It may have run before the ledger was lost.", "mailboxd release runs it",
		"release: it may have run before", "an operator, for it may have run before"},
	{AuthRequired, "Its agent has to be logged in.", "mailboxd release", "a login of its agent, then release", "the login of its agent"},
	{AnswerUnread, "Its agent has ended and what it answered cannot be read.", "mailboxd release reads it again",
		"release: its answer cannot be read", "an operator, for its answer cannot be read"},
	{ResultInvalid, "A file that is no result is in the place of its result.", "mend or remove that file",
		"removal of a foreign result file", "room for its result"},
	{Children, "Its agent waits for what it asked others for.", "", "the tasks that its agent asked others for", "the tasks below it"},
	{Reply, "Its agent has asked something.", "mailboxd reply", "a reply to its agent", "a reply"},
}

// Reasons lists every Reason.
func Reasons() []Reason {
	all := make([]Reason, len(reasons))
	for i, r := range reasons {
		all[i] = r.reason
	}
	return all
}

// Sentence returns the reason as a sentence in which "it" is the task; "" for an unknown
// reason.
func (r Reason) Sentence() string { return r.words().sentence }

// Clause returns the sentence as a part of a longer one.
func (r Reason) Clause() string {
	s := r.Sentence()
	if s == "" {
		return ""
	}
	return strings.ToLower(s[:1]) + strings.TrimSuffix(s[1:], ".")
}

// Remedy returns what a person can do, as a command or in a few words; "" for nothing.
func (r Reason) Remedy() string { return r.words().remedy }

// Needs returns what has to happen first, to follow "waits for"; "" for an unknown reason.
func (r Reason) Needs() string { return r.words().needs }

// Awaits returns the actor or thing that the task waits for, to follow "waits for"; "" for
// an unknown reason.
func (r Reason) Awaits() string { return r.words().awaits }

func (r Reason) words() reasonWords {
	at := slices.IndexFunc(reasons, func(w reasonWords) bool { return w.reason == r })
	if at < 0 {
		return reasonWords{}
	}
	return reasons[at]
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

	KindBudgetReserved Kind = "budget.reserved"
	KindBudgetSettled  Kind = "budget.settled"
	KindBudgetExceeded Kind = "budget.exceeded"

	KindApprovalAsked    Kind = "approval.asked"
	KindApprovalApproved Kind = "approval.approved"
	KindApprovalDenied   Kind = "approval.denied"
	KindApprovalExpired  Kind = "approval.expired"
	KindApprovalVoid     Kind = "approval.void"
	KindApprovalRefused  Kind = "approval.refused"

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
	KindMessageOwn           Kind = "message.own"
	KindMessageDuplicate     Kind = "message.duplicate"
	KindMessageUnknownSender Kind = "message.unknown_sender"
	KindLineRejected         Kind = "line.rejected"
	KindFileGone             Kind = "file.gone"
	KindAgentPaused          Kind = "agent.paused"
	KindAgentResumed         Kind = "agent.resumed"
	KindControlRefused       Kind = "control.refused"
	KindLedgerLost           Kind = "ledger.lost"
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
	{KindTaskDuplicate, "The task came again with the same content and was ignored.", "came once more with the same content, and was ignored"},
	{KindTaskDuplicateConflict, "The task came again with other content and was refused.", "came once more with another content, and was refused"},
	{KindTaskSuperseded, "A later revision replaced the task before it started.", "replaced by a later revision before it started"},
	{KindTaskResubmitted, "An operator asked for another run of the task, as a new revision.", ""},
	{KindTaskHeld, "The task is held until its reasons are gone.", ""},
	{KindTaskReleased, "An operator released the task.", ""},
	{KindTaskNoticed, "A person was notified that the task waits for one.", ""},
	{KindTaskQueued, "The task may start as soon as a slot is free.", ""},
	{KindTaskStarted, "The task was given to its agent.", "handed to its agent"},
	{KindTaskWaiting, "The task waits in the inbox of its agent.", "to be fetched by its agent"},
	{KindTaskClaimed, "A program claimed the task for its agent.", "fetched for its agent"},
	{KindTaskProgress, "The agent reported progress.", "its agent reports"},
	{KindTaskDelegated, "The agent asked for another task.", "its run asked for another"},
	{KindTaskResumed, "The task goes on, because what its agent waited for has happened.", ""},
	{KindTaskRetried, "The attempt failed and another one follows.", "to be tried again"},
	{KindTaskPutBack, "The agent did nothing, because it waits for a person.", "its agent could do nothing yet"},
	{KindTaskCancelled, "The task was cancelled.", ""},
	{KindTaskFinished, "The work on the task ended.", ""},
	{KindLeaseExpired, "The program that claimed the task did not answer in time.", "whoever claimed it did not answer in time"},
	{KindBudgetReserved, "What the run may spend was reserved.", ""},
	{KindBudgetSettled, "What the run spent was recorded and its reservation ended.", ""},
	{KindBudgetExceeded, "The run spent more than its budget.", "more than it may"},
	{KindApprovalAsked, "A person was asked for approval.", "a person was asked"},
	{KindApprovalApproved, "A person approved the task, or its answer.", ""},
	{KindApprovalDenied, "A person denied the task, or its answer.", ""},
	{KindApprovalExpired, "Nobody decided in time, or the approval was not used in time.", "nobody said anything in time"},
	{KindApprovalVoid, "The approval ended, because it is not needed any more or its subject changed.", "what was to be approved has changed"},
	{KindApprovalRefused, "Somebody who may not decide about the task tried to.", "who approved it may not"},
	{KindOversightAsked, "The overseer was asked to review the answer.", "its overseer was asked"},
	{KindOversightAnswered, "The agent replied to its overseer and kept its answer.", "its overseer has answered"},
	{KindOversightInquired, "The overseer sent the task back to its agent with a question.", "sent back to its agent"},
	{KindOversightApproved, "The overseer approved the answer.", "may be shown"},
	{KindOversightRejected, "The overseer rejected the answer, so it is not shown.", "is not shown"},
	{KindOversightExpired, "The overseer made no decision, so the answer is not shown.", "is not shown"},
	{KindResultAdopted, "A result file that mailboxd did not write was taken as the answer.", "what somebody else left as its result was taken as the answer"},
	{KindResultInvalid, "The file in the place of the result is no result for the task.", "what stands in the place of its result is none"},
	{KindResultRefused, "A result file was moved away, because the task needs an approval.", "a result file was moved away: its task needs an approval"},
	{KindResultConflict, "A file that mailboxd did not write stands in the place of the result and was left there.", "a file that is not ours stands in the place of its result"},
	{KindCallbackFailed, "The result could not be delivered to its callback.", "the result could not be delivered where it was asked for"},
	{KindCallbackAbandoned, "The daemon stopped trying to deliver the result to its callback.", "it is not tried again before a release or a restart"},
	{KindContextDegraded, "The context that the task refers to is not there, so the text that came with it is used.", "what it refers to is not there, so what came with it is used"},
	{KindMessageOwn, "A line that mailboxd itself wrote was ignored.", ""},
	{KindMessageDuplicate, "A message came again with the same content and was ignored.", ""},
	{KindMessageUnknownSender, "A message about the task came from a sender that is not known.", "somebody whom nobody here knows spoke about it"},
	{KindLineRejected, "A line that names no task was refused.", ""},
	{KindFileGone, "A task file is gone, and lines of it may not have been read.", "a task file is not there any more, and lines of it may not have been read"},
	{KindAgentPaused, "An agent, or every agent, was paused.", ""},
	{KindAgentResumed, "The pause of an agent, or of every agent, ended.", ""},
	{KindControlRefused, "A caller that may not change anything tried to.", ""},
	{KindLedgerLost, "The ledger was missing or could not be read, and a new one was started.", ""},
	{KindLedgerRecovered, "Every line from before the loss of the ledger was read again.", ""},
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
