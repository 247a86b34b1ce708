package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// Load reads the configuration. A flag wins over the environment, which wins over the
// file and the defaults. AINL_AGENT_ROOT sets the root, MAILBOXD_* any other key. An
// empty path means the user's own file, which need not exist.
func Load(path, root string) (Config, error) {
	c, _, err := Read(path, root)
	return c, err
}

// LoadIntake reads only the section of the intake, so that lint works when agents are
// misconfigured.
func LoadIntake(path, root string) (Intake, error) {
	c, from, err := decodedConfig(path, root)
	if err != nil {
		return Intake{}, err
	}
	if err := atLeast("intake.max_line_bytes", c.Intake.MaxLineBytes, 1024); err != nil {
		return Intake{}, fmt.Errorf("configuration %s: %w", from.File, err)
	}
	return c.Intake, nil
}

// Read is Load, and also returns where each value came from.
func Read(path, root string) (Config, Origins, error) {
	c, from, err := decodedConfig(path, root)
	if err != nil {
		return Config{}, Origins{}, err
	}
	if root == "" && os.Getenv("AINL_AGENT_ROOT") == "" {
		c.Root = c.Resolve(c.Root)
	}
	if err := c.gather(); err != nil {
		return Config{}, Origins{}, fmt.Errorf("configuration %s: %w", from.File, err)
	}
	c.StateDir = c.Resolve(c.StateDir)
	c.Policy.Schemas = c.Resolve(c.Policy.Schemas)
	for i, root := range c.Intake.RefRoots {
		c.Intake.RefRoots[i] = c.Resolve(root)
	}
	if err := c.check(); err != nil {
		return Config{}, Origins{}, fmt.Errorf("configuration %s: %w", from.File, err)
	}
	return c, from, nil
}

// decodedConfig decodes the configuration. It reads no file that the configuration
// names, and checks no value.
func decodedConfig(path, root string) (Config, Origins, error) {
	v := viper.New()
	defaults(v)
	v.SetEnvPrefix("MAILBOXD")
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	if err := v.BindEnv("root", "AINL_AGENT_ROOT"); err != nil {
		return Config{}, Origins{}, err
	}
	file, err := readConfigFile(v, path)
	if err != nil {
		return Config{}, Origins{}, err
	}
	if root != "" {
		v.Set("root", root)
	}
	c, given, err := decodeConfig(v)
	if err != nil {
		return Config{}, Origins{}, fmt.Errorf("configuration %s: %w", file, err)
	}
	if file != "" {
		c.dir = filepath.Dir(file)
	}
	return c, Origins{File: file, inFile: v.InConfig, given: given, root: root}, nil
}

// readConfigFile reads the file into v and returns its absolute path, or ""
// when there is none to read.
func readConfigFile(v *viper.Viper, path string) (string, error) {
	named := path != ""
	if !named {
		path = DefaultPath()
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

// namesOf decodes a file, including keys without a value.
func namesOf(text []byte) (map[string]any, error) {
	yaml, err := viper.NewCodecRegistry().Decoder("yaml")
	if err != nil {
		return nil, err
	}
	file := map[string]any{}
	return file, yaml.Decode(text, file)
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

// decodeConfig decodes v and lists its keys. The error of an unknown key names the
// nearest known one.
func decodeConfig(v *viper.Viper) (Config, []string, error) {
	var c Config
	var seen mapstructure.Metadata
	err := v.Unmarshal(&c, func(d *mapstructure.DecoderConfig) {
		d.Metadata = &seen
		d.DecodeHook = mapstructure.ComposeDecodeHookFunc(
			duration,
			wholeNumber,
			mapstructure.StringToSliceHookFunc(","),
			fillAgent,
			fillInbox,
			fillApprover,
		)
	})
	if err != nil {
		return Config{}, nil, err
	}
	for _, key := range append(seen.Unused, c.Policy.unknown()...) {
		return Config{}, nil, unknownKey(key)
	}
	return c, seen.Keys, nil
}
