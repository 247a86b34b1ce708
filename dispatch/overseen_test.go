package dispatch_test

import (
	"sync/atomic"
	"testing"

	"mailboxd/envelope"
)

// The operator may change who oversees an agent at any time, also while it ends.
func TestAnAnswerIsForWhoOverseesItsAgentWhenTheRunEnds(t *testing.T) {
	s := newReview(t)
	var asked atomic.Int32
	s.spoken.Overseer = func(agent string) string {
		if agent == "analyst" && asked.Add(1) > 1 {
			return "qa"
		}
		return ""
	}
	s.start()
	s.order("T1", "analyst")
	s.wantEnd("T1", envelope.OK, "")
}
