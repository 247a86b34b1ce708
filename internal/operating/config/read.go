package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"

	"mailboxd/envelope"
)

// Load reads the configuration. A flag wins over the environment, which wins over the
// file and the defaults. AINL_AGENT_ROOT sets the root, MAILBOXD_* any other key. An
// empty path means the user's own file, which need not exist. The error of a
// configuration that serve refuses is Mistakes, and has all of them.
func Load(path, root string) (Config, error) {
	c, _, err := Read(path, root)
	return c, err
}

// Read is Load, and also returns where each value came from.
func Read(path, root string) (Config, Origins, error) {
	r, err := open(path, root)
	if err == nil {
		r.checkAll()
		err = r.found().Err()
	}
	if err != nil {
		return Config{}, Origins{}, err
	}
	return r.config, r.origins, nil
}

// locations are the keys that say which mailbox a command uses. They are never guessed.
var locations = []string{"root", "state_dir"}

// Partial reads as much as can be read of a configuration that may be broken, for commands
// that need little of it: the root, the state directory and the ids of agents. What is
// mistaken has its default, and is returned. The error is about a file that cannot be read,
// or about the root and the state directory themselves.
func Partial(path, root string) (Config, Mistakes, error) {
	r, err := open(path, root)
	if err != nil {
		return Config{}, nil, err
	}
	r.check(r.config.gather())
	r.check(r.config.checkValues())
	found := r.found().Only(Refuses)
	for _, m := range found {
		if slices.Contains(locations, m.Key) {
			return Config{}, nil, found
		}
	}
	for _, key := range locations { // a misspelled one is missing, and its default is another mailbox
		if r.tree.isBroken(key) && r.origins.of(key) == "default" {
			return Config{}, nil, found
		}
	}
	return r.config, found, nil
}

// LoadLineRules reads only how lines are read, so that lint works when agents are
// misconfigured.
func LoadLineRules(path, root string) (LineRules, error) {
	r, err := open(path, root)
	if err != nil {
		return LineRules{}, err
	}
	r.check(r.config.checkValues())
	for _, m := range r.found() {
		if m.Key == "" || strings.HasPrefix(m.Key, "intake") || m.Key == "policy."+string(envelope.ControlNearMisses) {
			return LineRules{}, m
		}
	}
	return LineRules{r.config.Intake, r.config.Policy.nearMisses()}, nil
}

// LineRules are how lines are read.
type LineRules struct {
	Intake
	NearMisses envelope.Mode
}

// A reading is a configuration that was read, with its mistakes so far.
type reading struct {
	config   Config
	origins  Origins
	tree     *tree
	mistakes Mistakes
}

// open reads what file, environment and flag say, and checks the types of all values. What
// has a wrong type is left out. An error is about a file that cannot be read.
func open(path, root string) (*reading, error) {
	v := newViper()
	if err := v.BindEnv("root", "AINL_AGENT_ROOT"); err != nil {
		return nil, err
	}
	file, t, err := readConfigFile(v, path)
	if err != nil {
		return nil, err
	}
	r := &reading{tree: t}
	r.environment(v)
	if root != "" {
		v.Set("root", root)
	}
	c, given, err := decodeConfig(v)
	if err != nil {
		r.mistakes = append(r.mistakes, Mistake{File: t.file, Message: err.Error()})
	}
	if file != "" {
		c.file, c.dir = file, filepath.Dir(file)
	}
	if root == "" && os.Getenv("AINL_AGENT_ROOT") == "" {
		c.Root = c.Resolve(c.Root)
	}
	c.StateDir = c.Resolve(c.StateDir)
	c.Metrics.Textfile = c.Resolve(c.Metrics.Textfile)
	c.Policy.Schemas = c.Resolve(c.Policy.Schemas)
	for i, root := range c.Intake.RefRoots {
		c.Intake.RefRoots[i] = c.Resolve(root)
	}
	r.config, r.origins = c, Origins{File: file, inFile: v.InConfig, given: given, root: root}
	r.renamedNotice()
	r.check(r.config.readApproversFile())
	return r, nil
}

func newViper() *viper.Viper {
	v := viper.New()
	defaults(v)
	v.SetEnvPrefix("MAILBOXD")
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	return v
}

// readConfigFile reads the file into v. It returns its absolute path, "" when there is
// none to read, and its tree.
func readConfigFile(v *viper.Viper, path string) (string, *tree, error) {
	named, nothing := path != "", parseTree("", nil)
	if !named {
		path = DefaultPath()
	}
	if path == "" {
		return "", nothing, nil
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", nil, err
	}
	text, err := os.ReadFile(absolute)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return "", nothing, nil
	}
	if err != nil {
		return "", nil, &os.PathError{Op: "read configuration", Path: path, Err: errors.Unwrap(err)}
	}
	t := parseTree(path, text)
	values, err := t.values()
	if err != nil {
		t.note(position{1, 1}, "", "%v", err)
	}
	return absolute, t, v.MergeConfigMap(values)
}

// DefaultPath is the path of the configuration without --config; "" without a home
// directory. It is never in the working directory, since a configuration names commands.
func DefaultPath() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "mailboxd", "config.yaml")
}

// decodeConfig decodes v and lists its keys.
func decodeConfig(v *viper.Viper) (Config, []string, error) {
	var c Config
	var seen mapstructure.Metadata
	err := v.Unmarshal(&c, decodeHooks, func(d *mapstructure.DecoderConfig) { d.Metadata = &seen })
	return c, seen.Keys, err
}

// decodeHooks makes a decoder fill in defaults.
func decodeHooks(d *mapstructure.DecoderConfig) {
	d.DecodeHook = mapstructure.ComposeDecodeHookFunc(
		mapstructure.StringToTimeDurationHookFunc(),
		mapstructure.StringToSliceHookFunc(","),
		fillAgent,
		fillInbox,
		fillSandbox,
		fillACP,
		fillHTTP,
		fillApprover,
	)
}

// check adds errors about keys, unless the value was mistaken already.
func (r *reading) check(errs []error) { r.add(Refuses, errs...) }

// add adds errors about keys with an effect.
func (r *reading) add(effect Effect, errs ...error) {
	for _, err := range errs {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			r.add(effect, joined.Unwrap()...)
			continue
		}
		at, ok := errors.AsType[*keyError](err)
		if !ok || r.tree.isBroken(at.key) || r.hasWorse(at.key, effect) {
			continue
		}
		m := Mistake{Effect: effect, Key: at.key, Message: at.message}
		switch where := r.tree.find(at.key); r.origins.of(at.key) {
		case "environment":
			m.Message = variableOf(at.key) + ": " + at.message
		case "flag":
			m.Message = "--root: " + at.message
		default:
			m.File, m.Line, m.Column = r.tree.file, where.line, where.column
		}
		r.mistakes = append(r.mistakes, m)
	}
}

// has reports whether a key has a mistake.
func (r *reading) has(key string) bool { return r.hasWorse(key, Warns) }

// hasWorse reports whether a key has a mistake with a worse effect.
func (r *reading) hasWorse(key string, effect Effect) bool {
	return slices.ContainsFunc(r.mistakes, func(m Mistake) bool { return m.Key == key && m.Effect < effect })
}

// found returns all mistakes so far.
func (r *reading) found() Mistakes {
	return append(r.tree.mistakes[:len(r.tree.mistakes):len(r.tree.mistakes)], r.mistakes...).sorted()
}

// checkAll checks everything that serve refuses.
func (r *reading) checkAll() {
	c := &r.config
	wrongDefinitions := c.gather()
	for i, e := range c.written {
		if e.Definition != "" && r.definitionMistakes(e) { // by their lines
			r.tree.broken[fmt.Sprintf("agents[%d].definition", i)] = true
		}
	}
	r.check(wrongDefinitions)
	r.check(c.checkValues())
	for _, m := range firstReplicas(c.ReadAgents()) {
		for _, e := range m.Binding.Check() {
			r.check([]error{wrong(keyOf(m, e.Field), "%s", e.Problem)})
		}
	}
}
