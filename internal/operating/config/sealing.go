package config

import (
	"path/filepath"
	"slices"
	"strings"

	"mailboxd/internal/operating/sealing"
)

// Seal is what signs the seals of events, instead of a key in the state directory.
type Seal struct {
	Command   []string `mapstructure:"command"`
	PublicKey string   `mapstructure:"public_key"`
}

// Audit is what gets the seals of events.
type Audit struct {
	Anchor Anchor `mapstructure:"anchor"`
}

// An Anchor gets each new seal, out of the reach of the user.
type Anchor struct {
	File    string   `mapstructure:"file"`
	Command []string `mapstructure:"command"`
}

// Sealing returns where the keys are, and who signs.
func (c *Config) Sealing(state string) sealing.Options {
	o := sealing.Options{
		State: state, Command: slices.Clone(c.Seal.Command), PublicKey: c.Resolve(c.Seal.PublicKey),
		AnchorFile: c.Resolve(c.Audit.Anchor.File), AnchorCommand: slices.Clone(c.Audit.Anchor.Command),
	}
	c.resolveCommand(o.Command)
	c.resolveCommand(o.AnchorCommand)
	return o
}

// checkSealing refuses a command without its key, and an anchor that requesters can write.
func (c *Config) checkSealing() error {
	inside, err := filepath.Rel(c.Root, c.Audit.Anchor.File)
	switch {
	case len(c.Seal.Command) > 0 && c.Seal.PublicKey == "":
		return wrong("seal.public_key", "is missing: name the file with the public key of seal.command")
	case c.Audit.Anchor.File != "" && err == nil && inside != ".." && !strings.HasPrefix(inside, "../"):
		return wrong("audit.anchor.file", "%s is inside the mailbox %s; name a file outside", c.Audit.Anchor.File, c.Root)
	}
	return nil
}
