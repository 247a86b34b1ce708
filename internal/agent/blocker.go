package agent

import (
	"fmt"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// Phrases of programs for a missing login, or for a rate limit. They are searched in
// failures only, never in answers.
var (
	loginWords = []string{
		"401 unauthorized", "not logged in", "run /login", "authentication required", "authentication_failed", "authentication_error",
		"failed to authenticate", "invalid api key", "incorrect api key", "fix external api key", "agent login", "codex login",
		"set an auth method", "unauthenticated", "oauth token has expired",
	}
	limitWords = []string{
		"usage limit", "session limit", "weekly limit", "rate limit", "rate_limit", "ratelimit", "429 too many requests", "too many requests",
		"quota", "resource_exhausted", "resource exhausted", "you've hit your", "overloaded",
	}
)

func blockerIn(words string) blocker {
	words = strings.ToLower(words)
	within := func(w string) bool { return strings.Contains(words, w) }
	switch {
	case slices.ContainsFunc(loginWords, within):
		return loggedOut
	case slices.ContainsFunc(limitWords, within):
		return limited
	}
	return none
}

// exitLogin is the exit status of Gemini CLI without a login.
const exitLogin = 41

// explain finds the reason of a failed program that reported none on standard output: in
// its standard error and its exit status.
func (g *Agent) explain(j task.Job, exit task.Exit, reply answer) answer {
	if eventReaders[g.binding.Output] == nil || reply.kind != envelope.OutputInvalid || exit.Cause != "" || exit.Code == 0 {
		return reply
	}
	words, err := readStderrTail(j)
	if runner.Passing(err) {
		reply.err = fmt.Errorf("read standard error: %w", err)
		return reply
	}
	t := transcript{done: true, failed: true, message: strings.TrimPrefix(words, "; "), blocker: blockerIn(words)}
	if exit.Code == exitLogin && g.binding.Output == Gemini {
		t.blocker = loggedOut
	}
	if t.blocker == none {
		t.blocker = reply.blocker // from its events
	}
	if t.blocker == none {
		return reply
	}
	why, _ := t.result(j) // t is done, so it has a result
	why.result.Cost = reply.result.Cost
	return why
}

// applyBlocker sets what a blocked run waits for: a login, or another time.
func applyBlocker(o *task.Outcome, t blocker) {
	if o.Result.Status != envelope.Failed || o.Exit.Cause != "" {
		return
	}
	switch t {
	case loggedOut:
		o.Hold, o.Retry = task.AuthRequired, false
	case limited:
		o.Retry = true
	}
}
