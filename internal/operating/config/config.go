// Package config reads the configuration: defaults, file, environment and flags, and
// the manifests and definitions of agents. Only cmd/mailboxd imports it; other packages
// get values.
package config

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/viper"

	"mailboxd/envelope"
	"mailboxd/internal/running/services"
	"mailboxd/mailbox"
)

// Config is the whole configuration.
type Config struct {
	Root          string     `mapstructure:"root"`
	StateDir      string     `mapstructure:"state_dir"`
	Worktrees     string     `mapstructure:"worktrees_dir"`
	Log           Log        `mapstructure:"log"`
	Intake        Intake     `mapstructure:"intake"`
	Limits        Limits     `mapstructure:"limits"`
	Retention     Retention  `mapstructure:"retention"`
	Artifacts     Artifacts  `mapstructure:"artifacts"`
	Approvers     []Approver `mapstructure:"approvers"`
	Approval      Approval   `mapstructure:"approval"`
	ApproversFile string     `mapstructure:"approvers_file"`

	ApproversGroup  string `mapstructure:"approvers_group"`
	ApproversSocket string `mapstructure:"approvers_socket"`

	Senders    []Sender    `mapstructure:"senders"`
	Signatures []Signature `mapstructure:"signatures"`

	Oversight Oversight         `mapstructure:"oversight"`
	Policy    Policy            `mapstructure:"policy"`
	Notify    Notify            `mapstructure:"notify"`
	Notice    Notice            `mapstructure:"notice"`
	Metrics   Metrics           `mapstructure:"metrics"`
	Seal      Seal              `mapstructure:"seal"`
	Audit     Audit             `mapstructure:"audit"`
	Web       Web               `mapstructure:"web"`
	Workflows []Workflow        `mapstructure:"workflows"`
	Tools     []services.Server `mapstructure:"tools"`
	Remote    Remote            `mapstructure:"remote"`
	Runners   []SSHRunner       `mapstructure:"runners"`
	Agents    []Entry           `mapstructure:"agents"`
	Groups    []Group           `mapstructure:"groups"`
	Routing   Routing           `mapstructure:"routing"`

	Conversation     Conversation `mapstructure:"conversation"`
	StopAgentsOnExit bool         `mapstructure:"stop_agents_on_exit"`

	written []Entry // as in the file; Agents has one for each replica

	atRunner bool // it is of a runner, whose worktrees are of commits that come with the jobs

	file string // "" for none
	dir  string // relative commands and manifests start here
}

// File returns the path of the file that was read; "" for none.
func (c *Config) File() string { return c.file }

// defaults are set before anything is decoded, so that a zero means zero.
// config.example.yaml says why each is what it is.
func defaults(v *viper.Viper) {
	for key, value := range map[string]any{
		"root":                                   "/tmp/ainl_agents",
		"state_dir":                              "",
		"worktrees_dir":                          "",
		"stop_agents_on_exit":                    false,
		"log.level":                              "info",
		"log.format":                             "auto",
		"intake.max_line_bytes":                  1 << 20,
		"intake.rescan":                          30 * time.Second,
		"intake.first_start":                     "process",
		"intake.lenient_legacy":                  false,
		"intake.ref_roots":                       []string{},
		"limits.concurrency":                     4,
		"limits.queue":                           100_000,
		"limits.per_requester":                   0,
		"limits.queue_per_requester":             0,
		"limits.priority":                        0,
		"limits.broadcast":                       16,
		"oversight.rounds":                       3,
		"oversight.patience":                     24 * time.Hour,
		"conversation.question_timeout":          10 * time.Minute,
		"conversation.unknown_senders":           "refuse",
		"senders":                                []any{},
		"signatures":                             []any{},
		"groups":                                 []any{},
		"routing.ainl":                           "on",
		"routing.sandbox":                        "kernel",
		"routing.prod":                           []string{"prod", "production"},
		"routing.network":                        string(envelope.NetworkAllowed),
		"routing.timeout":                        24 * time.Hour,
		"limits.depth":                           3,
		"limits.children":                        32,
		"limits.provider_pause":                  30 * time.Minute,
		"limits.provider_pause_max":              5 * time.Hour,
		"limits.shutdown_grace":                  30 * time.Second,
		"retention.runs":                         720 * time.Hour,
		"retention.history":                      720 * time.Hour,
		"retention.rejected":                     2160 * time.Hour,
		"retention.ledger":                       2160 * time.Hour,
		"retention.worktrees":                    720 * time.Hour,
		"retention.max_run_bytes":                0,
		"artifacts.max_bytes":                    10 << 30,
		"policy.change_window.mode":              "enforce",
		"policy.change_window.exempt_task_types": []string{"execute_monitor", "advisory_*"},
		"policy.context_divisor":                 4,
		"policy.budget_classes":                  []any{},
		"policy.budgets":                         []any{},
		"policy.trust":                           []any{},
		"policy.proof":                           []any{},
		"policy.approval_ttl":                    168 * time.Hour,
		"policy.schemas":                         "",
		"policy.schemas_pinned":                  false,
		"policy.egress.public":                   []string{},
		"policy.egress.internal":                 []string{},
		"policy.egress.confidential":             []string{},
		"policy.egress.restricted":               []string{},
		"notify.waits":                           DefaultNotice(),
		"notify.finished":                        []string{},
		"notify.failed":                          []string{},
		"notice.command":                         nil,
		"metrics.textfile":                       "",
		"seal.command":                           []string{},
		"seal.public_key":                        "",
		"audit.anchor.file":                      "",
		"audit.anchor.command":                   []string{},
		"workflows":                              []any{},
		"tools":                                  []any{},
		"runners":                                []any{},
		"remote.url":                             "",
		"remote.name":                            DefaultRemoteName,
		"remote.credentials":                     "",
		"remote.lease":                           time.Minute,
		"remote.unreachable":                     24 * time.Hour,
		"agents":                                 []any{},
		"approvers":                              []any{},
		"approvers_file":                         "",
		"approvers_group":                        "",
		"approvers_socket":                       "",
		"approval.self":                          "refuse",
		"approval.program":                       "",
		"web.approve":                            "terminal",
	} {
		v.SetDefault(key, value)
	}
	for _, control := range scalarControls() {
		v.SetDefault("policy."+string(control), "enforce")
	}
}

// StateDirOf returns the state directory of a mailbox.
func (c *Config) StateDirOf(root string) (string, error) {
	if c.StateDir != "" {
		return c.StateDir, nil
	}
	return mailbox.DefaultStateDir(root)
}

// WorktreesDir returns the directory of the clones that runs work in: worktrees_dir, or
// $XDG_DATA_HOME/mailboxd/worktrees. XDG_DATA_HOME is ~/.local/share if it isn't an absolute
// path.
func (c *Config) WorktreesDir() (string, error) {
	if c.Worktrees != "" {
		return c.Resolve(c.Worktrees), nil
	}
	base := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find directory of worktrees: %w; set worktrees_dir", err)
		}
		base = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(base, "mailboxd", "worktrees"), nil
}
