package agent

import (
	"fmt"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// The words by which programs say that nobody is logged in, or that it was too
// much for now. They are looked for in what a program says of its failure,
// never in an answer.
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

func troubleIn(words string) trouble {
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

// exitLogin is the exit status of Gemini CLI for want of a login.
const exitLogin = 41

// explain finds out why a program that failed did not say so on its standard
// output: from its standard error, and its exit status.
func (g *Agent) explain(j task.Job, exit task.Exit, said answer) answer {
	if hearings[g.binding.Output] == nil || said.kind != envelope.OutputInvalid || exit.Cause != "" || exit.Code == 0 {
		return said
	}
	words, err := readLastWords(j)
	if runner.Passing(err) {
		said.err = fmt.Errorf("read standard error: %w", err)
		return said
	}
	t := transcript{done: true, failed: true, message: strings.TrimPrefix(words, "; "), trouble: troubleIn(words)}
	if exit.Code == exitLogin && g.binding.Output == Gemini {
		t.trouble = loggedOut
	}
	if t.trouble == none {
		t.trouble = said.trouble // heard of before its end
	}
	if t.trouble == none {
		return said
	}
	why, _ := t.result(j) // it is done, so there is one
	why.result.Cost = said.result.Cost
	return why
}

// addTrouble has what keeps a program from working decide what becomes of its run: it
// waits for a login, or for another time.
func addTrouble(o *task.Outcome, t trouble) {
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
