package store

import (
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/sign"
)

// A Protocol tells the engine the dialect of each agent, and what agents may do to each other.
// Its functions are safe for concurrent use, and accept ids of unknown agents.
type Protocol struct {
	Dialect     func(agent string) envelope.Dialect                           // the dialect in which an agent is asked and answers
	Overseer    func(agent string) string                                     // the approver of an agent's answers; "" for none (CAP-24)
	StepReview  func(t envelope.Task) string                                  // the approver of the answer of a workflow step; "" for none (CLUTCH-92)
	HasReviews  func() bool                                                   // whether StepReview names an approver for any task
	MayDelegate func(from, to string) string                                  // why an agent may not delegate to another; "" when it may (CAP-19)
	Rule        func(from, to string) string                                  // when an agent should delegate, as text; "" without a rule (CAP-20)
	Takers      func(taskType string, announced map[string][]string) []string // the agents that take a type of work, in order (CLOWL-09)
	Supports    func(agent string) []string                                   // the types of work that an agent announces (CLOWL-29)
	Agents      func() []string                                               // all ids, in order
	Secret      func(sender string) string                                    // the secret that authenticates a sender; "" for none (CLOWL-18)
	Signatures  func() sign.Rules                                             // keys of senders, and what they must sign (CLUTCH-63)
	Sign        func(line []byte) ([]byte, error)                             // signs a message of mailboxd
	OnFailure   func(agent string, kind envelope.Kind) FailureAction          // what to do when the work of an agent fails (CAP-32)

	AcceptsUnknown  func() bool          // whether messages of unknown senders are accepted
	QuestionTimeout func() time.Duration // how long a requester may take to reply to a question; after that the question is the answer

	Rounds       int           // how often an overseer may send work back
	ReplyTimeout time.Duration // how long an overseer or another participant may take to reply; 0: without limit
	Broadcast    int           // how many agents Everybody may stand for
}

// Route, as the agent of a reassignment, is the agent that routing chooses.
const Route = "route"

// A FailureAction is what to do about work that failed. The zero value is nothing.
type FailureAction struct {
	Retry    bool   // try it again, as long as the agent has retries
	Reassign string // or give it to this agent; Route: to the one that routing chooses
	Escalate string // or ask this participant, and wait for a reply
}

// WithDefaults returns the protocol with defaults for the optional functions that are nil.
func (p Protocol) WithDefaults() Protocol {
	if p.Dialect == nil {
		p.Dialect = func(string) envelope.Dialect { return envelope.AINL }
	}
	if p.Overseer == nil {
		p.Overseer = func(string) string { return "" }
	}
	if p.StepReview == nil {
		p.StepReview = func(envelope.Task) string { return "" }
	}
	if p.HasReviews == nil {
		p.HasReviews = func() bool { return false }
	}
	if p.MayDelegate == nil {
		p.MayDelegate = func(string, string) string { return "" }
	}
	if p.AcceptsUnknown == nil {
		p.AcceptsUnknown = func() bool { return false }
	}
	if p.QuestionTimeout == nil {
		p.QuestionTimeout = func() time.Duration { return 0 }
	}
	if p.Rule == nil {
		p.Rule = func(string, string) string { return "" }
	}
	if p.Signatures == nil {
		p.Signatures = func() sign.Rules { return sign.Rules{} }
	}
	if p.OnFailure == nil {
		p.OnFailure = func(string, envelope.Kind) FailureAction { return FailureAction{} }
	}
	return p
}
