package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/quota"
	"mailboxd/internal/running/runner"
)

// Phrases of programs for a missing login, or for a problem that may pass in a moment. They
// are searched in failures only, never in answers.
var (
	loginWords = []string{
		"401 unauthorized", "not logged in", "run /login", "authentication required", "authentication_failed", "authentication_error",
		"failed to authenticate", "invalid api key", "incorrect api key", "fix external api key", "agent login", "codex login",
		"set an auth method", "unauthenticated", "oauth token has expired",
		"api key not valid", // of Gemini: https://ai.google.dev/gemini-api/docs/troubleshooting
	}
	busyWords = []string{
		"rate limit", "rate_limit", "ratelimit", "429 too many requests", "too many requests", "quota", "overloaded", "at capacity",
	}
)

// blockerIn finds the blocker in the message of a program about its failure.
func (f Format) blockerIn(words string) blocker {
	if kind := quota.KindOf(string(f), words); kind != 0 {
		return unserved[kind]
	}
	words = strings.ToLower(words)
	within := func(w string) bool { return strings.Contains(words, w) }
	switch {
	case slices.ContainsFunc(loginWords, within):
		return loggedOut
	case slices.ContainsFunc(busyWords, within):
		return busy
	}
	return none
}

// unserved are the blockers of a provider that does not serve a program.
var unserved = map[quota.Kind]blocker{quota.Quota: limited, quota.Rate: throttled, quota.Overload: overloaded}

// refusedWith returns the blocker of an answer of the provider, by its HTTP status and the
// program's words about it; none for a status that says nothing of what can be done.
func (f Format) refusedWith(status int, words string) blocker {
	switch status {
	case 401, 403:
		return loggedOut
	case 429:
		if b := f.blockerIn(words); b == limited {
			return limited
		}
		return throttled
	case 503, 529:
		return overloaded
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
	t := transcript{format: g.binding.Output, done: true, failed: true, message: strings.TrimPrefix(words, "; ")}
	t.blocker, t.resets, t.acted = t.format.blockerIn(words), reply.resets, reply.acted
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

// applyBlocker sets what a blocked run waits for: a login, the end of a limit of the
// provider, or another time. A run that spent too much doesn't wait for a limit. A run that
// used a tool before its provider was overloaded is tried again only as the operator allows.
func applyBlocker(o *task.Outcome, reply answer, overspent bool) {
	if o.Result.Status != envelope.Failed || o.Exit.Cause != "" {
		return
	}
	switch reply.blocker {
	case loggedOut:
		o.Hold, o.Retry = task.AuthRequired, false
	case limited, throttled, overloaded:
		switch {
		case reply.blocker == overloaded && reply.acted:
			o.Retry = true
		case !overspent:
			o.Hold, o.HoldUntil, o.Retry = task.ProviderLimit, limitEnd(reply, o.Exit), false
			o.HoldShort = reply.blocker != limited
		}
	case busy:
		o.Retry = true
	}
}

// limitEnd returns when the limit ends that a run met; zero if the program names no time.
func limitEnd(reply answer, exit task.Exit) time.Time {
	printed := exit.Finished.Local()
	if at, ok := quota.At(reply.resets, printed); reply.resets > 0 && ok {
		return at
	}
	if reply.retryAfter > 0 {
		return printed.Add(reply.retryAfter)
	}
	at, _ := quota.Reset(strings.ReplaceAll(reply.result.Error.Message, `\n`, " "), printed) // the end of stderr is quoted
	return at
}
