// Package quota reads from the failure message of a coding agent's program whether a usage
// limit of its provider stopped it, and when that limit ends. It reads no clock.
package quota

import "strings"

// messages are parts of the messages with which each program reports a usage limit, in
// lower case. They are only for text that the program itself wrote about its failure: a
// model's answer may contain the same words. A single word such as "quota" would also be
// in "disk quota exceeded".
var messages = map[string][]string{
	// github.com/anthropics/claude-code/issues/42042, 12789, 7157 and 85572 have the words
	// of versions 1.0 to 2.1; "usage limit reached|EPOCH" is that of 2025.
	"claude": {
		"usage limit reached", "limit reached ·", "limit reached ∙", "hit your limit", "hit your session limit", "hit your weekly limit",
		"hit your usage limit", "hit your opus limit", "hit your sonnet limit", "hit your org's", "out of extra usage",
		"exceed your account's rate limit", "credit balance is too low",
	},
	// github.com/openai/codex, codex-rs/core/src/error.rs: UsageLimitReachedError,
	// RetryLimitReachedError, QuotaExceeded.
	"codex": {
		"hit your usage limit", "usage limit has been reached", "hit your spend cap", "last status: 429", "rate limit reached for",
		"quota exceeded. check your plan",
	},
	// github.com/cursor/cursor/issues/3703, and the code of the RPC that it is made of.
	"cursor": {"hit your usage limit", "hit your free requests limit", "[resource_exhausted]"},
	// The words of providers, which opencode passes on: https://platform.openai.com/docs/guides/error-codes
	// and https://docs.claude.com/en/api/rate-limits.
	"opencode": {
		"exceeded your current quota", "usage limit has been reached", "rate limit reached for", "exceed your account's rate limit",
		"credit balance is too low",
	},
	// github.com/google-gemini/gemini-cli, packages/core/src/utils/googleQuotaErrors.ts,
	// and its issues 13004, 14889 and 15576.
	"gemini": {
		"exhausted your capacity", "exhausted your daily quota", "quota will reset after", "terminalquotaerror", "resource_exhausted",
		"resource has been exhausted", "quota exceeded for", "exceeded your current quota",
	},
}

// Reached reports whether a program (claude, codex, cursor, gemini, opencode) says in its own message
// about its failure that it reached a limit of its provider.
func Reached(program, message string) bool {
	message = normal(message)
	for _, part := range messages[program] {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}

// normal returns a message in lower case, with plain apostrophes and spaces.
func normal(message string) string {
	return strings.ToLower(strings.NewReplacer("’", "'", "\u00a0", " ", "\u202f", " ", "\n", " ", "\r", " ").Replace(message))
}
