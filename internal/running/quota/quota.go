// Package quota reads from the failure message of a coding agent's program whether its provider
// did not serve it for now, why, and when it serves again. It reads no clock.
package quota

import (
	"slices"
	"strings"
)

// A Kind is why a provider does not serve a program for now. The zero value is no such reason.
type Kind int

// The kinds.
const (
	Quota    Kind = iota + 1 // the account has used what it may use in hours, days or a month
	Rate                     // too many requests or tokens in a minute
	Overload                 // the provider has more requests than it can serve
)

// phrases are parts of the messages with which each program reports one kind, in lower case.
// They are only for text that the program itself wrote about its failure: a model's answer
// may contain the same words. A single word such as "quota" would also be in "disk quota
// exceeded".
type phrases map[string][]string

// rates are looked for before quotas: Gemini CLI has both in one message.
var rates = phrases{
	// Printed by version 2.1.197 after a 429.
	"claude": {"exceed your account's rate limit", "request rejected (429)"},
	// github.com/openai/codex, codex-rs/core/src/error.rs: RetryLimitReachedError. A used-up
	// quota has words of its own.
	"codex": {"last status: 429", "rate limit reached for"},
	// The words of providers, which opencode passes on: https://platform.openai.com/docs/guides/error-codes
	// and https://docs.claude.com/en/api/rate-limits.
	"opencode": {"rate limit reached for", "exceed your account's rate limit"},
	// github.com/google-gemini/gemini-cli, packages/core/src/utils/googleQuotaErrors.ts: the
	// RetryInfo of the answer; printed by version 0.61.0.
	"gemini": {"suggested retry after", "resource has been exhausted", "resource exhausted. please try again later"},
}

var quotas = phrases{
	// github.com/anthropics/claude-code/issues/42042, 12789, 7157 and 85572 have the words
	// of versions 1.0 to 2.1; "usage limit reached|EPOCH" is that of 2025.
	"claude": {
		"usage limit reached", "limit reached ·", "limit reached ∙", "hit your limit", "hit your session limit", "hit your weekly limit",
		"hit your usage limit", "hit your opus limit", "hit your sonnet limit", "hit your org's", "out of extra usage", "credit balance is too low",
	},
	// github.com/openai/codex, codex-rs/core/src/error.rs: UsageLimitReachedError, QuotaExceeded.
	"codex": {"hit your usage limit", "usage limit has been reached", "hit your spend cap", "quota exceeded. check your plan"},
	// github.com/cursor/cursor/issues/3703, and the code of the RPC that it is made of.
	"cursor": {"hit your usage limit", "hit your free requests limit", "[resource_exhausted]"},
	// "Monthly usage limit reached": github.com/anomalyco/opencode/issues/40747.
	"opencode": {"exceeded your current quota", "usage limit has been reached", "usage limit reached", "credit balance is too low"},
	// As the rates of Gemini CLI, and its issues 13004, 14889 and 15576.
	"gemini": {
		"exhausted your capacity", "exhausted your daily quota", "quota will reset after", "terminalquotaerror", "resource_exhausted",
		"quota exceeded for", "exceeded your current quota",
	},
}

var overloads = phrases{
	// Printed by version 2.1.197 after answers with 529: https://docs.claude.com/en/api/errors.
	"claude": {"repeated 529 overloaded", "overloaded_error", "api error: 529", "api error: 503"},
	// Printed by version 0.169.0 after 503; codex-rs/core/src/error.rs: ServerOverloaded.
	"codex": {"selected model is at capacity", "last status: 503", "last status: 529", "unexpected status 503", "unexpected status 529"},
	// https://ai.google.dev/gemini-api/docs/troubleshooting: 503 UNAVAILABLE.
	"gemini": {"the model is overloaded", "experiencing high demand", `"code":503`, `"status":"unavailable"`},
	// As its rates.
	"opencode": {"overloaded"},
}

// KindOf returns why the provider of a program (claude, codex, cursor, gemini, opencode) did not
// serve it, as the program's own message about its failure says; 0 if it names no such reason.
func KindOf(program, message string) Kind {
	message = normal(message)
	switch {
	case rates.in(program, message):
		return Rate
	case quotas.in(program, message):
		return Quota
	case overloads.in(program, message):
		return Overload
	}
	return 0
}

func (p phrases) in(program, message string) bool {
	return slices.ContainsFunc(p[program], func(part string) bool { return strings.Contains(message, part) })
}

// normal returns a message in lower case, with plain apostrophes and spaces.
func normal(message string) string {
	return strings.ToLower(strings.NewReplacer("’", "'", "\u00a0", " ", "\u202f", " ", "\n", " ", "\r", " ").Replace(message))
}
