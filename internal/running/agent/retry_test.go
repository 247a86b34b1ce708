package agent_test

import (
	"testing"
	"time"

	"mailboxd/internal/running/agent"
)

// The rules of retries for agents with a process for each run.
func TestOnlyDeathsWithoutAnAnswerOfIdempotentAgentsAreRepeated(t *testing.T) {
	ok := `{"status": "ok", "output": {"summary": "fine"}}`
	text := func(b agent.Binding) agent.Binding { b.Output = agent.Text; return b }
	hurried := playing(t, "hang")
	hurried.Timeout = time.Millisecond
	for name, c := range map[string]struct {
		binding agent.Binding
		retry   bool
	}{
		"a death by signal":    {playing(t, "suicide"), true},
		"a bad exit":           {printing(t, "", 3), true},
		"a bad exit, answered": {printing(t, ok, 3), false},
		"an invalid answer":    {printing(t, "junk", 0), false},
		"a timeout":            {hurried, false},
		"no text, a signal":    {text(playing(t, "suicide")), true},
		"no text, a bad exit":  {text(printing(t, "", 3)), true},
		"a text, a bad exit":   {text(printing(t, "it is fine", 3)), false},
	} {
		if got := outcome(t, c.binding); got.Retry {
			t.Errorf("%s: is repeated; want that only of an idempotent agent", name)
		}
		c.binding.Idempotent = true
		if got := outcome(t, c.binding); got.Retry != c.retry {
			t.Errorf("%s: retry = %v; want %v", name, got.Retry, c.retry)
		}
	}
}
