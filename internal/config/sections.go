package config

import (
	"slices"
	"time"

	"mailboxd/envelope"
)

// Log is the section of the log.
type Log struct {
	Level  string `mapstructure:"level"`
	Format string `mapstructure:"format"`
}

// Intake is how lines are read.
type Intake struct {
	MaxLineBytes  int64         `mapstructure:"max_line_bytes"`
	Rescan        time.Duration `mapstructure:"rescan"`
	FirstStart    string        `mapstructure:"first_start"`
	LenientLegacy bool          `mapstructure:"lenient_legacy"`
	RefRoots      []string      `mapstructure:"ref_roots"`
}

// Reading is how strictly requests are read.
func (i Intake) Reading() envelope.Reading {
	if i.LenientLegacy {
		return envelope.Legacy
	}
	return envelope.Strict
}

// Limits are the limits of the daemon.
type Limits struct {
	Concurrency   int           `mapstructure:"concurrency"`
	Queue         int           `mapstructure:"queue"`
	PerRequester  int           `mapstructure:"per_requester"`
	QueuePer      int           `mapstructure:"queue_per_requester"`
	Depth         int           `mapstructure:"depth"`
	Children      int           `mapstructure:"children"`
	Broadcast     int           `mapstructure:"broadcast"`
	ProviderPause time.Duration `mapstructure:"provider_pause"`
	ProviderMax   time.Duration `mapstructure:"provider_pause_max"`
	ShutdownGrace time.Duration `mapstructure:"shutdown_grace"`
}

// Retention is how long files and records are kept.
type Retention struct {
	Runs        time.Duration `mapstructure:"runs"`
	History     time.Duration `mapstructure:"history"`
	Rejected    time.Duration `mapstructure:"rejected"`
	Ledger      time.Duration `mapstructure:"ledger"`
	Worktrees   time.Duration `mapstructure:"worktrees"`
	MaxRunBytes int64         `mapstructure:"max_run_bytes"`
}

// Notice is how a person is notified.
type Notice struct {
	Command []string `mapstructure:"command"`
}

// DefaultNotice is the command that shows notices on a desktop.
func DefaultNotice() []string { return []string{"notify-send", "--app-name=mailboxd"} }

// NoticeCommand returns the command of notices with an absolute path.
func (c *Config) NoticeCommand() []string {
	command := slices.Clone(c.Notice.Command)
	c.resolveCommand(command)
	return command
}

// Approval is who may decide about what.
type Approval struct {
	Self string `mapstructure:"self"`
}

// A Sender is a participant that authenticates with a secret (CLOWL-18).
type Sender struct {
	Name       string `mapstructure:"name"`
	SecretEnv  string `mapstructure:"secret_env"`
	SecretFile string `mapstructure:"secret_file"`
}

// Oversight limits the reviews by an overseer.
type Oversight struct {
	Rounds   int           `mapstructure:"rounds"`
	Patience time.Duration `mapstructure:"patience"`
}

// Conversation limits the time of a reply by the requester.
type Conversation struct {
	QuestionTimeout time.Duration `mapstructure:"question_timeout"`
}
