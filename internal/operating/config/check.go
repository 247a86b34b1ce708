package config

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// checkValues refuses values that no part could work with. Package agent checks how an
// agent is run.
func (c *Config) checkValues() []error {
	checks := []error{
		expanded("root", c.Root),
		expanded("state_dir", c.StateDir),
		expanded("worktrees_dir", c.Worktrees),
		expanded("policy.schemas", c.Policy.Schemas),
		choice("log.level", c.Log.Level),
		choice("approval.self", c.Approval.Self),
		choice("approval.program", c.Approval.Program),
		choice("web.approve", c.Web.Approve),
		choice("log.format", c.Log.Format),
		choice("intake.first_start", c.Intake.FirstStart),
		choice("conversation.unknown_senders", c.Conversation.UnknownSenders),
		atLeast("intake.max_line_bytes", c.Intake.MaxLineBytes, 1024),
		positive("intake.rescan", c.Intake.Rescan),
		atLeast("limits.concurrency", int64(c.Limits.Concurrency), 1),
		atLeast("limits.queue", int64(c.Limits.Queue), 1),
		atLeast("limits.per_requester", int64(c.Limits.PerRequester), 0),
		atLeast("limits.depth", int64(c.Limits.Depth), 0),
		atLeast("limits.children", int64(c.Limits.Children), 0),
		atLeast("limits.queue_per_requester", int64(c.Limits.QueuePer), 0),
		c.Limits.checkPriority(),
		atLeast("limits.broadcast", int64(c.Limits.Broadcast), 1),
		atLeast("oversight.rounds", int64(c.Oversight.Rounds), 0),
		atLeast("oversight.patience", int64(c.Oversight.Patience), 0),
		atLeast("conversation.question_timeout", int64(c.Conversation.QuestionTimeout), 0),
		c.Limits.checkProviderPause(),
		atLeast("limits.shutdown_grace", int64(c.Limits.ShutdownGrace), 0),
		atLeast("retention.runs", int64(c.Retention.Runs), 0),
		atLeast("retention.history", int64(c.Retention.History), 0),
		atLeast("retention.rejected", int64(c.Retention.Rejected), 0),
		atLeast("retention.ledger", int64(c.Retention.Ledger), 0),
		atLeast("retention.worktrees", int64(c.Retention.Worktrees), 0),
		atLeast("retention.max_run_bytes", c.Retention.MaxRunBytes, 0),
		atLeast("artifacts.max_bytes", c.Artifacts.MaxBytes, 0),
		atLeast("policy.approval_ttl", int64(c.Policy.ApprovalTTL), 0),
		c.checkStateDir(),
		expanded("metrics.textfile", c.Metrics.Textfile),
		c.Metrics.check(c.Root),
		expanded("audit.anchor.file", c.Audit.Anchor.File),
		expanded("seal.public_key", c.Seal.PublicKey),
		c.checkSealing(),
	}
	checks = append(checks, c.checkSenders()...)
	checks = append(checks, c.checkSignatures()...)
	checks = append(checks, c.checkRouting()...)
	checks = append(checks, c.checkApprovers()...)
	checks = append(checks, c.checkWorkflows()...)
	checks = append(checks, c.checkApproversGroup()...)
	checks = append(checks, c.Remote.check()...)
	checks = append(checks, checkRunners(c.Runners, c.Remote)...)
	for i, root := range c.Intake.RefRoots {
		checks = append(checks, expanded(fmt.Sprintf("intake.ref_roots[%d]", i), root))
	}
	checks = append(checks, c.Policy.check(c.Agents)...)
	checks = append(checks, c.checkWorktrees())
	checks = append(checks, checkTools(c.Tools, c.written)...)
	for i, entry := range c.written {
		checks = append(checks, entry.check(fmt.Sprintf("agents[%d]", i))...)
		checks = append(checks, c.checkSandbox(fmt.Sprintf("agents[%d]", i), entry)...)
		checks = append(checks, entry.checkSetup(fmt.Sprintf("agents[%d].exec.worktree.setup", i))...)
	}
	return checks
}

// checkStateDir refuses a state directory where requesters can write.
func (c *Config) checkStateDir() error {
	inside, err := filepath.Rel(c.Root, c.StateDir)
	if c.StateDir == "" || err != nil || inside == ".." || strings.HasPrefix(inside, "../") {
		return nil
	}
	return wrong("state_dir", "%s is inside the mailbox %s, whose writers could forge it: name a directory outside", c.StateDir, c.Root)
}

// expanded refuses a tilde, which only shells understand.
func expanded(key, path string) error {
	if strings.HasPrefix(path, "~") || strings.HasPrefix(filepath.Base(path), "~") || strings.Contains(path, "/~/") {
		return wrong(key, "%s: only a shell understands ~; write the home directory out", path[strings.IndexByte(path, '~'):])
	}
	return nil
}

// patterns refuses what path.Match cannot read.
func patterns(key string, list []string) error {
	var checks []error
	for i, text := range list {
		checks = append(checks, pattern(fmt.Sprintf("%s[%d]", key, i), text))
	}
	return errors.Join(checks...)
}

func pattern(key, text string) error {
	if _, err := path.Match(text, ""); err != nil {
		return wrong(key, "%q is not a pattern: a bracket is not closed, or a backslash ends it", text)
	}
	return nil
}

func positive(key string, value time.Duration) error {
	if value > 0 {
		return nil
	}
	return wrong(key, "must be more than 0s")
}

// checkProviderPause checks the pauses after a usage limit of a provider.
func (l Limits) checkProviderPause() error {
	switch {
	case l.ProviderPause < time.Second:
		return wrong("limits.provider_pause", "must be at least 1s, such as 30m")
	case l.ProviderMax < l.ProviderPause:
		return wrong("limits.provider_pause_max", "must be at least limits.provider_pause, %v", l.ProviderPause)
	}
	return nil
}

func atLeast(key string, value, least int64) error {
	if value >= least {
		return nil
	}
	return wrong(key, "must be at least %d", least)
}
