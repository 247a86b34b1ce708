package config

import (
	"path/filepath"
	"slices"
	"strings"
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
	Priority      int           `mapstructure:"priority"`
	Depth         int           `mapstructure:"depth"`
	Children      int           `mapstructure:"children"`
	Broadcast     int           `mapstructure:"broadcast"`
	ProviderPause time.Duration `mapstructure:"provider_pause"`
	ProviderMax   time.Duration `mapstructure:"provider_pause_max"`
	ShutdownGrace time.Duration `mapstructure:"shutdown_grace"`
}

// checkPriority refuses a priority that no task can have.
func (l Limits) checkPriority() error {
	if l.Priority < 0 || l.Priority > envelope.MaxPriority {
		return wrong("limits.priority", "must be from 0 to %d", envelope.MaxPriority)
	}
	return nil
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

// Artifacts is how much the artifacts of all tasks may take.
type Artifacts struct {
	MaxBytes int64 `mapstructure:"max_bytes"`
}

// Notify has the commands of notices, by what happened.
type Notify struct {
	Waits    []string `mapstructure:"waits"`
	Finished []string `mapstructure:"finished"`
	Failed   []string `mapstructure:"failed"`
}

// Notice has the earlier name of notify.waits.
type Notice struct {
	Command []string `mapstructure:"command"` // nil: not set
}

// Metrics is where metrics are written, besides the control socket.
type Metrics struct {
	Textfile string `mapstructure:"textfile"`
}

// check refuses a file that requesters can write.
func (m Metrics) check(root string) error {
	inside, err := filepath.Rel(root, m.Textfile)
	if m.Textfile == "" || err != nil || inside == ".." || strings.HasPrefix(inside, "../") {
		return nil
	}
	return wrong("metrics.textfile", "%s is inside the mailbox %s; name a file outside", m.Textfile, root)
}

// DefaultNotice is the command that shows notices on a desktop.
func DefaultNotice() []string { return []string{"notify-send", "--app-name=mailboxd"} }

// NotifyCommands returns the commands of notices with absolute paths.
func (c *Config) NotifyCommands() Notify {
	n := Notify{slices.Clone(c.Notify.Waits), slices.Clone(c.Notify.Finished), slices.Clone(c.Notify.Failed)}
	for _, command := range [][]string{n.Waits, n.Finished, n.Failed} {
		c.resolveCommand(command)
	}
	return n
}

// renamedNotice has notice.command count as notify.waits, unless that is set too.
func (r *reading) renamedNotice() {
	c := &r.config
	if c.Notice.Command == nil {
		return
	}
	words := "is the earlier name of notify.waits; rename it"
	if r.origins.of("notify.waits") != "default" {
		words = "is the earlier name of notify.waits, which is set too and counts; remove it"
	} else {
		c.Notify.Waits = c.Notice.Command
	}
	r.add(Warns, wrong("notice.command", "%s", words))
}

// Approval is who may decide about what, and what an approval covers.
type Approval struct {
	Self    string `mapstructure:"self"`
	Program string `mapstructure:"program"` // content or path; "": as package agent says
}

// Web is the page of mailboxd web.
type Web struct {
	Approve string `mapstructure:"approve"`
}

// A Sender is a participant that authenticates with a secret (CLOWL-18), signs its messages (CLUTCH-63), or
// logs in at mailboxd gateway.
type Sender struct {
	Name       string      `mapstructure:"name"`
	SecretEnv  string      `mapstructure:"secret_env"`
	SecretFile string      `mapstructure:"secret_file"`
	Keys       []SenderKey `mapstructure:"keys"`
	Token      string      `mapstructure:"token"`  // SHA-256 in hexadecimal
	Agents     []string    `mapstructure:"agents"` // that it may ask at the gateway; empty: all
}

// Oversight limits the reviews by an overseer.
type Oversight struct {
	Rounds   int           `mapstructure:"rounds"`
	Patience time.Duration `mapstructure:"patience"`
}

// Conversation limits the time of a reply by the requester, and says whether messages of
// unknown senders are accepted.
type Conversation struct {
	UnknownSenders  string        `mapstructure:"unknown_senders"` // accept or refuse
	QuestionTimeout time.Duration `mapstructure:"question_timeout"`
}
