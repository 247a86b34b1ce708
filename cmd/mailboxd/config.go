package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// config is the whole configuration, read once. It lives in package main,
// which nothing can import: parts are handed values, never this.
type config struct {
	Root      string        `mapstructure:"root"`
	StateDir  string        `mapstructure:"state_dir"`
	Log       logConfig     `mapstructure:"log"`
	Intake    intake        `mapstructure:"intake"`
	Limits    limits        `mapstructure:"limits"`
	Retention retentionKeys `mapstructure:"retention"`
	Approvers []approver    `mapstructure:"approvers"`
	Senders   []sender      `mapstructure:"senders"`
	Oversight oversight     `mapstructure:"oversight"`
	Policy    policyRules   `mapstructure:"policy"`
	Notice    notice        `mapstructure:"notice"`
	Agents    []agentEntry  `mapstructure:"agents"`

	Conversation     conversation `mapstructure:"conversation"`
	StopAgentsOnExit bool         `mapstructure:"stop_agents_on_exit"`

	written []agentEntry // as they stand in the file, where Agents has one for each replica

	ephemeral bool // the mailbox is gone when we are: nobody need fear for it

	dir string // relative commands and manifests start here
}

type logConfig struct {
	Level  string `mapstructure:"level"`
	Format string `mapstructure:"format"`
}

type intake struct {
	MaxLineBytes  int64         `mapstructure:"max_line_bytes"`
	Rescan        time.Duration `mapstructure:"rescan"`
	FirstStart    string        `mapstructure:"first_start"`
	LenientLegacy bool          `mapstructure:"lenient_legacy"`
	RefRoots      []string      `mapstructure:"ref_roots"`
}

type limits struct {
	Concurrency   int           `mapstructure:"concurrency"`
	Queue         int           `mapstructure:"queue"`
	PerRequester  int           `mapstructure:"per_requester"`
	QueuePer      int           `mapstructure:"queue_per_requester"`
	Depth         int           `mapstructure:"depth"`
	Children      int           `mapstructure:"children"`
	Broadcast     int           `mapstructure:"broadcast"`
	ShutdownGrace time.Duration `mapstructure:"shutdown_grace"`
}

type retentionKeys struct {
	Runs        time.Duration `mapstructure:"runs"`
	History     time.Duration `mapstructure:"history"`
	Rejected    time.Duration `mapstructure:"rejected"`
	Ledger      time.Duration `mapstructure:"ledger"`
	MaxRunBytes int64         `mapstructure:"max_run_bytes"`
}

type notice struct {
	Command []string `mapstructure:"command"`
}

type policyRules struct {
	Modes          map[string]any `mapstructure:",remain"` // by the name of each control but change_window
	ChangeWindow   changeWindow   `mapstructure:"change_window"`
	ContextDivisor int            `mapstructure:"context_divisor"`
	BudgetClasses  []budgetClass  `mapstructure:"budget_classes"`
	Budgets        []dayBudget    `mapstructure:"budgets"`
	Trust          []trustRow     `mapstructure:"trust"`
	ApprovalTTL    time.Duration  `mapstructure:"approval_ttl"`
	Schemas        string         `mapstructure:"schemas"`
}

type changeWindow struct {
	Mode            string   `mapstructure:"mode"`
	ExemptTaskTypes []string `mapstructure:"exempt_task_types"`
}

// defaults are set before anything is decoded, so that a zero means zero.
// config.example.yaml says why each is what it is.
func defaults(v *viper.Viper) {
	for key, value := range map[string]any{
		"root":                                   "/tmp/ainl_agents",
		"state_dir":                              "",
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
		"limits.broadcast":                       16,
		"oversight.rounds":                       3,
		"oversight.patience":                     24 * time.Hour,
		"conversation.question_timeout":          10 * time.Minute,
		"senders":                                []any{},
		"limits.depth":                           3,
		"limits.children":                        32,
		"limits.shutdown_grace":                  30 * time.Second,
		"retention.runs":                         720 * time.Hour,
		"retention.history":                      720 * time.Hour,
		"retention.rejected":                     2160 * time.Hour,
		"retention.ledger":                       2160 * time.Hour,
		"retention.max_run_bytes":                0,
		"policy.change_window.mode":              "enforce",
		"policy.change_window.exempt_task_types": []string{"execute_monitor", "advisory_*"},
		"policy.context_divisor":                 4,
		"policy.budget_classes":                  []any{},
		"policy.budgets":                         []any{},
		"policy.trust":                           []any{},
		"policy.approval_ttl":                    168 * time.Hour,
		"policy.schemas":                         "",
		"notice.command":                         noticeDefault(),
		"agents":                                 []any{},
		"approvers":                              []any{},
	} {
		v.SetDefault(key, value)
	}
	for _, control := range scalarControls() {
		v.SetDefault("policy."+string(control), "enforce")
	}
}

// loadConfig reads the configuration: flag over environment over file over
// default (design: AINL_AGENT_ROOT sets the root, MAILBOXD_* every other key).
// An empty path means the user's own file, which need not exist.
func loadConfig(path, root string) (config, error) {
	c, _, err := readConfig(path, root)
	return c, err
}

// loadIntake reads how lines are judged, and nothing else: a definition of which
// no agent can be made can still be linted.
func loadIntake(path, root string) (intake, error) {
	c, from, err := decodedConfig(path, root)
	if err != nil {
		return intake{}, err
	}
	if err := atLeast("intake.max_line_bytes", c.Intake.MaxLineBytes, 1024); err != nil {
		return intake{}, fmt.Errorf("configuration %s: %w", from.file, err)
	}
	return c.Intake, nil
}

// readConfig is loadConfig, and says where each value came from.
func readConfig(path, root string) (config, origins, error) {
	c, from, err := decodedConfig(path, root)
	if err != nil {
		return config{}, origins{}, err
	}
	if root == "" && os.Getenv("AINL_AGENT_ROOT") == "" {
		c.Root = c.resolve(c.Root)
	}
	if err := c.gather(); err != nil {
		return config{}, origins{}, fmt.Errorf("configuration %s: %w", from.file, err)
	}
	c.StateDir = c.resolve(c.StateDir)
	c.Policy.Schemas = c.resolve(c.Policy.Schemas)
	for i, root := range c.Intake.RefRoots {
		c.Intake.RefRoots[i] = c.resolve(root)
	}
	if err := c.check(); err != nil {
		return config{}, origins{}, fmt.Errorf("configuration %s: %w", from.file, err)
	}
	return c, from, nil
}

// decodedConfig is the configuration as it is written: nothing that it names is
// read yet, and no value is checked.
func decodedConfig(path, root string) (config, origins, error) {
	v := viper.New()
	defaults(v)
	v.SetEnvPrefix("MAILBOXD")
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	if err := v.BindEnv("root", "AINL_AGENT_ROOT"); err != nil {
		return config{}, origins{}, err
	}
	file, err := readConfigFile(v, path)
	if err != nil {
		return config{}, origins{}, err
	}
	if root != "" {
		v.Set("root", root)
	}
	c, given, err := decodeConfig(v)
	if err != nil {
		return config{}, origins{}, fmt.Errorf("configuration %s: %w", file, err)
	}
	if file != "" {
		c.dir = filepath.Dir(file)
	}
	return c, origins{file: file, inFile: v.InConfig, given: given, root: root}, nil
}

// readConfigFile reads the file into v and returns its absolute path, or ""
// when there is none to read.
func readConfigFile(v *viper.Viper, path string) (string, error) {
	named := path != ""
	if !named {
		path = defaultConfigPath()
	}
	if path == "" {
		return "", nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read configuration: %w", err)
	}
	v.SetConfigType("yaml")
	if err := v.ReadConfig(strings.NewReader(string(text))); err != nil {
		return "", fmt.Errorf("read configuration %s: %w", path, err)
	}
	file, err := namesOf(text)
	if err == nil {
		err = checkNames(file)
	}
	if err != nil {
		return "", fmt.Errorf("configuration %s: %w", path, err)
	}
	return path, nil
}

// namesOf reads a file as it is, with the keys that have no value.
func namesOf(text []byte) (map[string]any, error) {
	yaml, err := viper.NewCodecRegistry().Decoder("yaml")
	if err != nil {
		return nil, err
	}
	file := map[string]any{}
	return file, yaml.Decode(text, file)
}

// defaultConfigPath is where a configuration is looked for without --config; ""
// for who has no home. It is never the directory where we happen to be: what
// lies there names commands.
func defaultConfigPath() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "mailboxd", "config.yaml")
}

// decodeConfig turns v into a config, and lists the keys that v has; one that
// config does not have is an error that names the nearest one it has.
func decodeConfig(v *viper.Viper) (config, []string, error) {
	var c config
	var seen mapstructure.Metadata
	err := v.Unmarshal(&c, func(d *mapstructure.DecoderConfig) {
		d.Metadata = &seen
		d.DecodeHook = mapstructure.ComposeDecodeHookFunc(
			duration,
			whole,
			mapstructure.StringToSliceHookFunc(","),
			fillAgent,
			fillInbox,
			fillApprover,
		)
	})
	if err != nil {
		return config{}, nil, err
	}
	for _, key := range append(seen.Unused, c.Policy.unknown()...) {
		return config{}, nil, unknownKey(key)
	}
	return c, seen.Keys, nil
}
