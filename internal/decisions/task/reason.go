package task

import (
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
)

// A Reason is why a task is held. The zero value is none.
type Reason string

// The reasons, in the order in which a person should handle them.
const (
	Approval      Reason = "approval"
	Reply         Reason = "reply"
	AuthRequired  Reason = "auth_required"
	AnswerUnread  Reason = "answer_unread"
	ResultInvalid Reason = "result_invalid"
	RunDirectory  Reason = "run_directory"
	Recovered     Reason = "recovered"
	Operator      Reason = "operator"
	Unreachable   Reason = "unreachable"
	NoRunner      Reason = "no_runner"
	ProviderLimit Reason = "provider_limit"
	Children      Reason = "children"
	Routing       Reason = "routing"
	Paused        Reason = "paused"
	ChangeWindow  Reason = "change_window"
	Capacity      Reason = "capacity"
	After         Reason = "after"
	SameCommand   Reason = "same_command"
)

// An Action is what a person does to end a hold. The zero value is nothing.
type Action string

// The actions.
const (
	Decide  Action = "decide"  // approve or deny the task
	Answer  Action = "answer"  // reply to its agent
	Release Action = "release" // release the task
	Resume  Action = "resume"  // resume its agent
	Repair  Action = "repair"  // correct a file
)

// ReasonFacts are the texts about a Reason and its rules. The zero value is of an unknown one.
//
// Next may contain {agent}, {result} for the path of the result file, and {release}, {reply},
// {thread} and {explain} for commands about the task.
type ReasonFacts struct {
	Reason   Reason
	Sentence string // in which "it" is the task
	Remedy   string // what a person can do, as a command or in a few words; "" for nothing
	Why      string // Sentence and Remedy in one clause, with {result}; "" to join the two
	Needs    string // follows "waits for" in a list of tasks
	Until    string // between Needs and the end of the hold; "" if the end isn't shown
	Quotes   bool   // the last output of the run follows
	Awaits   string // follows "waits for" in a conversation
	Next     string // what a person can do, with the whole command; "" for nothing
	Notice   string // the clause of a notice that the task waits for a person; "" if none is sent

	Action      Action
	NeedsPerson bool  // it is listed first, because only a person ends the hold
	Lasts       bool  // verdicts never contain it, so a verdict, a reload and a restart keep it
	Keyed       Keyed // how long a Wait says what wakes the task
}

// AfterRun reports whether the outcome of a run may make its task wait for the reason.
func (r Reason) AfterRun() bool {
	return r == Reply || r == AuthRequired || r == ProviderLimit || r == Children
}

// reasons has the facts of every Reason, in the order of the constants.
var reasons = []ReasonFacts{
	{
		Reason: Approval, Action: Decide, NeedsPerson: true,
		Sentence: "It needs an approval.", Remedy: "mailboxd approve",
		Needs: "approval", Awaits: "approval", Notice: "it needs an approval",
	},
	{
		Reason: Reply, Action: Answer, NeedsPerson: true,
		Sentence: "Its agent asked a question.", Remedy: "mailboxd reply",
		Needs: "a reply to its agent", Until: " until ", Awaits: "a reply", Notice: "its agent asked a question",
		Next: "{reply}, or see what it asked: {thread}",
	},
	{
		Reason: AuthRequired, Action: Release, NeedsPerson: true, Lasts: true,
		Sentence: "Its agent needs a login.", Remedy: "mailboxd release", Why: "its agent needs a login, then: mailboxd release",
		Needs: "a login of its agent, then release", Quotes: true, Awaits: "the login of its agent",
		Next: "log in to what {agent} runs, then {release}", Notice: "its agent needs a login",
	},
	{
		Reason: AnswerUnread, Action: Release, NeedsPerson: true,
		Sentence: "Its agent has ended, and its answer can't be read.", Remedy: "mailboxd release reads it again",
		Needs: "release: its answer cannot be read", Awaits: "an operator, for its answer cannot be read",
		Next: "{release}", Notice: "the answer of its agent cannot be read",
	},
	{
		Reason: ResultInvalid, Action: Repair, NeedsPerson: true,
		Sentence: "An invalid file is at the path of its result.", Remedy: "correct or remove the file",
		Why:   "{result} is no result for it: correct or remove the file",
		Needs: "removal of a foreign result file", Awaits: "the removal of an invalid result file",
		Next: "correct or remove {result}", Notice: "an invalid file is at the path of its result",
	},
	{
		Reason: RunDirectory, Action: Release, NeedsPerson: true, Lasts: true,
		Sentence: "Something else is at the path of its run directories.", Remedy: "move it away, then mailboxd release",
		Needs: "release: something else is at the path of its run directories", Awaits: "an operator, for something else is at the path of its run directories",
		Next: "move it away, then {release}", Notice: "something else is at the path of its run directories",
	},
	{
		Reason: Recovered, Action: Release, NeedsPerson: true, Lasts: true,
		Sentence: "It may have run before the ledger was lost or restored.", Remedy: "mailboxd release runs it",
		Needs: "release: it may have run before", Awaits: "an operator, for it may have run before",
		Next: "{release}", Notice: "it may have run before the ledger was lost or restored",
	},
	{
		Reason: Operator, Action: Release, NeedsPerson: true, Lasts: true,
		Sentence: "An operator holds it.", Remedy: "mailboxd release",
		Needs: "release by an operator", Awaits: "an operator",
		Next: "{release}", // no notice: a person made the hold
	},
	{
		Reason:   Unreachable, // it is running
		Sentence: "The runner that has it can't be reached.", Remedy: "mailboxd runners, or mailboxd cancel --abandon",
		Needs: "its runner, which can't be reached", Awaits: "its runner, which can't be reached",
		Next: "nothing; its answer arrives once the runner can be reached again",
	},
	{
		Reason:   NoRunner,
		Sentence: "No runner with room may have it.", Remedy: "mailboxd runners",
		Needs: "a runner that may have it", Awaits: "a runner that may have it",
		Next: "nothing; it goes on by itself once a runner that may have it has room: mailboxd runners",
	},
	{
		Reason: ProviderLimit, Action: Release, // it also ends by itself
		Sentence: "The provider of its agent reached a usage limit, or is overloaded.", Remedy: "mailboxd release tries at once",
		Needs: "its provider", Until: ", tried again ", Quotes: true, Awaits: "its provider, which limits it or is overloaded",
		Next: "nothing; it goes on by itself. To try at once: {release}",
	},
	{
		Reason:   Children,
		Sentence: "Its agent waits for the tasks that it delegated.",
		Needs:    "the tasks that its agent delegated", Awaits: "the tasks below it", Next: "{thread}",
	},
	{
		Reason:   Routing,
		Sentence: "Its agent is not chosen yet.", Remedy: "mailboxd route explain",
		Needs: "a free agent that can do it", Until: ", until ", Awaits: "a free agent that can do it",
		Next: "nothing; it goes on by itself. Which agents can do it: {explain}",
	},
	{
		Reason: Paused, Action: Resume,
		Sentence: "Its agent is paused.", Remedy: "mailboxd resume",
		Needs: "resume: its agent is paused", Awaits: "its agent, which is paused",
	},
	{
		Reason:   ChangeWindow,
		Sentence: "Its change window has not begun.",
		Needs:    "its change window, open", Until: "s ", Awaits: "its change window",
	},
	{
		Reason: Capacity, Keyed: UntilItRuns, // where it is for budget
		Sentence: "It waits for its next attempt, or for budget that other runs have reserved.", Why: "it is tried again after a pause",
		Needs: "its next attempt", Until: " at ", Awaits: "a pause before the next attempt",
	},
	{
		Reason: After, Keyed: WhileHeld,
		Sentence: "It waits for the end of another task.",
		Needs:    "the end of another task", Awaits: "the end of another task",
	},
	{
		Reason: SameCommand, Lasts: true, // the task never runs
		Sentence: "Another task carries out the same command.",
		Needs:    "the task with the same command", Awaits: "the task with the same command",
	},
}

// Reasons lists every Reason.
func Reasons() []Reason {
	all := make([]Reason, len(reasons))
	for i, f := range reasons {
		all[i] = f.Reason
	}
	return all
}

// Facts returns the ReasonFacts of a reason.
func (r Reason) Facts() ReasonFacts {
	at := slices.IndexFunc(reasons, func(f ReasonFacts) bool { return f.Reason == r })
	if at < 0 {
		return ReasonFacts{}
	}
	return reasons[at]
}

// Clause returns the sentence as a part of a longer one; "" for an unknown reason.
func (f ReasonFacts) Clause() string {
	if f.Sentence == "" {
		return ""
	}
	return strings.ToLower(f.Sentence[:1]) + strings.TrimSuffix(f.Sentence[1:], ".")
}

// WhyOf says in one clause why a task is held, and what a person can do about it.
func (f ReasonFacts) WhyOf(id envelope.ID) string {
	switch {
	case f.Why != "":
		return strings.ReplaceAll(f.Why, "{result}", "results/"+string(id)+".json")
	case f.Remedy != "":
		return f.Clause() + ": " + f.Remedy
	}
	return f.Clause()
}

// EndedBy reports whether an action of a person ends one of some holds.
func EndedBy(held []Reason, a Action) bool {
	return slices.ContainsFunc(held, func(r Reason) bool { return r.Facts().Action == a })
}

// FactsOf returns the facts of some reasons, in the order of Reasons. It leaves out unknown ones.
func FactsOf(held []Reason) (all []ReasonFacts) {
	for _, f := range reasons {
		if slices.Contains(held, f.Reason) {
			all = append(all, f)
		}
	}
	return all
}

// EndsWithBudget reports whether a hold for a reason lasts until other runs leave some budget.
// The time of that is unknown, so such a hold lasts until the deadline of its task. A pause
// between two attempts has an end of its own.
func (r Reason) EndsWithBudget(until, deadline time.Time) bool {
	return r == Capacity && until.Equal(deadline)
}
