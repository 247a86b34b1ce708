package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"

	"github.com/spf13/viper"

	"mailboxd/envelope"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/services"
)

// A Runner is the configuration of mailboxd runner: a file runner.yaml. Agents, tools, worktrees_dir and log
// mean what they mean in the configuration of a daemon.
type Runner struct {
	Name           string            `mapstructure:"name"`  // "": as the credentials say
	Slots          int               `mapstructure:"slots"` // how many runs at once; 0: 4
	Capabilities   []string          `mapstructure:"capabilities"`
	MaxSensitivity string            `mapstructure:"max_sensitivity"` // of all tasks; "": internal
	State          string            `mapstructure:"state"`           // "": $XDG_STATE_HOME/mailboxd-runner
	Worktrees      string            `mapstructure:"worktrees_dir"`   // "": $XDG_DATA_HOME/mailboxd/runner-worktrees
	MinFree        int64             `mapstructure:"min_free_bytes"`  // of the disk of the state; below it no job is taken
	Log            Log               `mapstructure:"log"`
	Tools          []services.Server `mapstructure:"tools"`
	Agents         []Entry           `mapstructure:"agents"`

	file     string
	bindings []agent.Binding
	most     map[string]envelope.Sensitivity
}

// File returns the path of the file.
func (c *Runner) File() string { return c.file }

// NoJobsFile is the file in the state directory of a runner that says why its owner gives it no jobs.
const NoJobsFile = "no-jobs.txt"

// StateDir returns the state directory.
func (c *Runner) StateDir() (string, error) {
	if c.State != "" {
		return c.State, nil
	}
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the state directory: %w; set state", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "mailboxd-runner"), nil
}

// Bindings returns how the agents are run.
func (c *Runner) Bindings() []agent.Binding { return c.bindings }

// MostSensitive returns the highest sensitivity of a task that an agent may get here.
func (c *Runner) MostSensitive(agent string) envelope.Sensitivity { return c.most[agent] }

// DefaultRunnerPath is the path of runner.yaml without --config; "" without a home directory.
func DefaultRunnerPath() string {
	if path := DefaultPath(); path != "" {
		return filepath.Join(filepath.Dir(path), "runner.yaml")
	}
	return ""
}

// LoadRunner reads runner.yaml. The error is Mistakes, with all of them, or about a file that can't be read.
func LoadRunner(path string) (Runner, error) {
	path, err := filepath.Abs(cmp.Or(path, DefaultRunnerPath()))
	if err != nil {
		return Runner{}, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Runner{}, fmt.Errorf("read configuration of the runner: %w; write one, or name it with --config", err)
	}
	r := &reading{tree: parseTreeOf(path, text, reflect.TypeFor[Runner](), "docs/runners.md lists all keys")}
	c := Runner{file: path}
	if err := r.decodeRunner(&c); err != nil {
		r.mistakes = append(r.mistakes, Mistake{File: path, Message: err.Error()})
	}
	r.checkAll()
	if !r.tree.broken[""] { // what isn't YAML has no keys to miss
		r.check(c.check())
	}
	if err := r.found().Err(); err != nil {
		return Runner{}, err
	}
	return c, c.readAgents(r.config)
}

// decodeRunner decodes the file into a Runner, and its shared sections into a Config, whose checks they get.
func (r *reading) decodeRunner(c *Runner) error {
	values, err := r.tree.values()
	if err != nil {
		return err
	}
	own, shared := viper.New(), viper.New()
	own.SetDefault("slots", 4)
	own.SetDefault("max_sensitivity", "internal")
	own.SetDefault("min_free_bytes", 256<<20)
	own.SetDefault("log.level", "info")
	own.SetDefault("log.format", "auto")
	defaults(shared)
	if err := own.MergeConfigMap(values); err != nil {
		return err
	}
	some := map[string]any{}
	for _, key := range []string{"agents", "tools", "worktrees_dir", "log"} {
		if value, ok := values[key]; ok {
			some[key] = value
		}
	}
	if err := shared.MergeConfigMap(some); err != nil {
		return err
	}
	if r.config, _, err = decodeConfig(shared); err != nil {
		return err
	}
	r.config.file, r.config.dir, r.config.atRunner = c.file, filepath.Dir(c.file), true
	r.origins = Origins{File: c.file, inFile: own.InConfig}
	if err := own.Unmarshal(c, decodeHooks); err != nil {
		return err
	}
	c.State, c.Worktrees = r.config.Resolve(c.State), r.config.Resolve(c.Worktrees)
	if c.Worktrees == "" {
		dir, err := r.config.WorktreesDir()
		if err != nil {
			return err
		}
		c.Worktrees = filepath.Join(filepath.Dir(dir), "runner-worktrees")
	}
	r.config.Worktrees = c.Worktrees
	return nil
}

// readAgents makes the bindings of a configuration without mistakes.
func (c *Runner) readAgents(shared Config) error {
	all, _ := envelope.ParseSensitivity(c.MaxSensitivity)
	c.most = map[string]envelope.Sensitivity{}
	for _, m := range shared.ReadAgents() {
		if err := m.Problem(); err != nil {
			return fmt.Errorf("%s: %s: %w", c.file, keyOf(m, "id"), err)
		}
		c.bindings = append(c.bindings, m.Binding)
		c.most[m.Binding.ID] = min(all, m.Subject.MaxSensitivity)
	}
	return nil
}

// word is what a capability may be.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

// mostSlots limits slots.
const mostSlots = 10_000

// check refuses values that a runner can't work with.
func (c *Runner) check() []error {
	checks := []error{
		expanded("state", c.State), expanded("worktrees_dir", c.Worktrees),
		oneOf("max_sensitivity", c.MaxSensitivity, choicesOf("agents[].max_sensitivity")...),
		atLeast("slots", int64(c.Slots), 1), atLeast("min_free_bytes", c.MinFree, 0),
	}
	if c.Slots > mostSlots {
		checks = append(checks, wrong("slots", "must be at most %d", mostSlots))
	}
	if c.Name != "" && !RemoteNames.MatchString(c.Name) {
		checks = append(checks, wrong("name", remoteName, c.Name))
	}
	for i, name := range c.Capabilities {
		if !word.MatchString(name) {
			checks = append(checks, wrong(fmt.Sprintf("capabilities[%d]", i), "%q is not one word, such as gpu", name))
		}
	}
	if len(c.Agents) == 0 {
		checks = append(checks, wrong("agents", "required, the agents of this runner, such as [{id: trainer, exec: {command: [./train.sh]}}]"))
	}
	for i, e := range c.Agents {
		checks = append(checks, e.checkAtRunner(fmt.Sprintf("agents[%d].", i))...)
	}
	return checks
}

// checkAtRunner refuses what a runner doesn't do.
func (e Entry) checkAtRunner(key string) (checks []error) {
	for name, given := range map[string]bool{
		"worker": len(e.Worker.Command) > 0, "inbox": e.Inbox != nil, "http": e.HTTP != nil, "a2a": e.A2A != nil, "mcp": e.MCP != nil,
		"remote": e.Remote != nil,
	} {
		if given {
			checks = append(checks, wrong(key+name, "a runner has only agents with exec.command"))
		}
	}
	for name, given := range map[string]bool{
		"manifest": e.Manifest != "", "card": e.Card != "", "task_types": e.TaskTypes != nil,
		"environments": e.Environments != nil, "on_error": e.OnError != nil,
	} {
		if given {
			checks = append(checks, wrong(key+name, "is for the configuration of the daemon, which decides about tasks; remove it here"))
		}
	}
	return checks
}
