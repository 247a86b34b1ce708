package config

import (
	"fmt"
	"math"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// duration is a decoding hook: 600 would be 600 nanoseconds, which nobody
// means, so a duration needs its unit. Zero has none.
func duration(from, to reflect.Value) (any, error) {
	if to.Type() != reflect.TypeFor[time.Duration]() || from.Type() == to.Type() {
		return from.Interface(), nil
	}
	text := fmt.Sprint(from.Interface())
	if n, err := strconv.ParseFloat(text, 64); err == nil && n != 0 {
		return nil, fmt.Errorf("%s has no unit: write %[1]ss", text)
	}
	if from.Kind() == reflect.String {
		return time.ParseDuration(text)
	}
	return from.Interface(), nil
}

// wholeNumber is a decoding hook that refuses to cut a number down to an integer.
func wholeNumber(from, to reflect.Value) (any, error) {
	if to.CanInt() && from.CanFloat() && from.Float() != math.Trunc(from.Float()) {
		return nil, fmt.Errorf("%v is not a whole number", from.Float())
	}
	return from.Interface(), nil
}

// check refuses values that no part could work with; it names the key. What
// an agent is made of, package agent checks.
func (c *Config) check() error {
	checks := []error{
		expanded("root", c.Root),
		expanded("state_dir", c.StateDir),
		expanded("policy.schemas", c.Policy.Schemas),
		oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error"),
		oneOf("log.format", c.Log.Format, "auto", "console", "json"),
		oneOf("intake.first_start", c.Intake.FirstStart, "process", "from_end"),
		atLeast("intake.max_line_bytes", c.Intake.MaxLineBytes, 1024),
		atLeast("intake.rescan", int64(c.Intake.Rescan), 1),
		atLeast("limits.concurrency", int64(c.Limits.Concurrency), 1),
		atLeast("limits.queue", int64(c.Limits.Queue), 1),
		atLeast("limits.per_requester", int64(c.Limits.PerRequester), 0),
		atLeast("limits.depth", int64(c.Limits.Depth), 0),
		atLeast("limits.children", int64(c.Limits.Children), 0),
		atLeast("limits.queue_per_requester", int64(c.Limits.QueuePer), 0),
		atLeast("limits.broadcast", int64(c.Limits.Broadcast), 1),
		atLeast("oversight.rounds", int64(c.Oversight.Rounds), 0),
		atLeast("oversight.patience", int64(c.Oversight.Patience), 0),
		atLeast("conversation.question_timeout", int64(c.Conversation.QuestionTimeout), 0),
		c.checkSenders(),
		atLeast("limits.shutdown_grace", int64(c.Limits.ShutdownGrace), 0),
		atLeast("retention.runs", int64(c.Retention.Runs), 0),
		atLeast("retention.history", int64(c.Retention.History), 0),
		atLeast("retention.rejected", int64(c.Retention.Rejected), 0),
		atLeast("retention.ledger", int64(c.Retention.Ledger), 0),
		atLeast("retention.max_run_bytes", c.Retention.MaxRunBytes, 0),
		atLeast("policy.approval_ttl", int64(c.Policy.ApprovalTTL), 0),
		c.checkApprovers(),
	}
	for i, root := range c.Intake.RefRoots {
		checks = append(checks, expanded(fmt.Sprintf("intake.ref_roots[%d]", i), root))
	}
	checks = append(checks, c.Policy.check(c.Agents)...)
	for _, entry := range c.Agents {
		checks = append(checks, entry.check(fmt.Sprintf("agents[%d]", entry.index))...)
	}
	return firstOf(checks)
}

// expanded refuses a tilde, which only shells understand.
func expanded(key, path string) error {
	if strings.HasPrefix(filepath.Base(path), "~") || strings.Contains(path, "/~/") {
		return fmt.Errorf("%s: %q: write the home directory out", key, path)
	}
	return nil
}

// patterns refuses what path.Match cannot read.
func patterns(key string, list []string) error {
	for i, pattern := range list {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%s[%d]: %q is not a pattern", key, i, pattern)
		}
	}
	return nil
}

func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %s", key, value, strings.Join(allowed, ", "))
}

func atLeast(key string, value, least int64) error {
	if value >= least {
		return nil
	}
	return fmt.Errorf("%s: must be at least %d", key, least)
}

func firstOf(checks []error) error {
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}
