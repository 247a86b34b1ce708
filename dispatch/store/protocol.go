package store

import (
	"time"

	"mailboxd/envelope"
)

// A Protocol is how the engine learns in which dialect it speaks with agents, and
// which of them may do what to each other. Its functions are handed in, safe for
// concurrent use, and answer for ids that are no agents too.
type Protocol struct {
	Dialect     func(agent string) envelope.Dialect                           // in which an agent is asked, and answers
	Overseer    func(agent string) string                                     // who approves of what it answers; "" for nobody (CAP-24)
	MayDelegate func(from, to string) string                                  // why an agent may not hand work to another; "" when it may (CAP-19)
	Rule        func(from, to string) string                                  // when it shall, in words; "" when nobody said (CAP-20)
	Takers      func(taskType string, announced map[string][]string) []string // the agents that take a type of work, in order (CLOWL-09)
	Supports    func(agent string) []string                                   // what it takes, for others to know (CLOWL-29)
	Agents      func() []string                                               // all ids, in order
	Secret      func(sender string) string                                    // what proves that it is who it says; "" for nothing (CLOWL-18)
	OnFailure   func(agent string, kind envelope.Kind) FailureAction          // what to do when its work fails (CAP-32)

	QuestionTimeout func() time.Duration // how long a requester may take to reply to a question that is the answer else

	Rounds       int           // how often an overseer may send work back
	ReplyTimeout time.Duration // how long an overseer, or another participant who is asked, may take; 0: for ever
	Broadcast    int           // how many agents Everybody may be
}

// A FailureAction is what to do about work that failed. The zero value is nothing.
type FailureAction struct {
	Retry    bool   // try it again, as long as the agent has retries
	Reassign string // or have this agent do it
	Escalate string // or ask this participant, and wait for a reply
}

// WithDefaults returns the protocol with default functions for some that were not handed in.
func (p Protocol) WithDefaults() Protocol {
	if p.Dialect == nil {
		p.Dialect = func(string) envelope.Dialect { return envelope.AINL }
	}
	if p.Overseer == nil {
		p.Overseer = func(string) string { return "" }
	}
	if p.MayDelegate == nil {
		p.MayDelegate = func(string, string) string { return "" }
	}
	if p.QuestionTimeout == nil {
		p.QuestionTimeout = func() time.Duration { return 0 }
	}
	if p.Rule == nil {
		p.Rule = func(string, string) string { return "" }
	}
	if p.OnFailure == nil {
		p.OnFailure = func(string, envelope.Kind) FailureAction { return FailureAction{} }
	}
	return p
}
