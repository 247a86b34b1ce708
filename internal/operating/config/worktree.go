package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"mailboxd/internal/sandboxing/sandbox"
)

// A Worktree is how a clone for a run is made. In the file it is also true, which is {}, or false,
// which is none.
type Worktree struct {
	Copy  []string `mapstructure:"copy"`
	Setup *Setup   `mapstructure:"setup"` // nil: none
}

// A Setup is the command that prepares a clone before the agent's command.
type Setup struct {
	Command []string `mapstructure:"command"`
	Network []string `mapstructure:"network"` // in a sandbox; nil: that of the sandbox
}

// checkSetup refuses a setup without a command, or with hosts that nothing would hold it to.
func (e Entry) checkSetup(key string) (checks []error) {
	if e.Exec.Worktree == nil || e.Exec.Worktree.Setup == nil {
		return nil
	}
	u := *e.Exec.Worktree.Setup
	if len(u.Command) == 0 || u.Command[0] == "" {
		checks = append(checks, wrong(key+".command", "required, a list such as [npm, ci]"))
	}
	for i, entry := range u.Network {
		if err := sandbox.CheckHost(entry); err != nil {
			checks = append(checks, wrong(fmt.Sprintf("%s.network[%d]", key, i), "%v", err))
		}
	}
	profile, missing := sandbox.None, sandbox.Refuse
	if e.Sandbox != nil {
		profile, missing = sandbox.Profile(e.Sandbox.Profile), sandbox.Missing(e.Sandbox.Missing)
	}
	switch {
	case profile == sandbox.ReadOnly:
		checks = append(checks, wrong(key, "the sandbox profile read-only can't write the worktree; use workspace or offline"))
	case u.Network != nil && profile == sandbox.None:
		checks = append(checks, wrong(key+".network", "needs a sandbox, which limits the hosts; set the agent's sandbox, or remove it"))
	case len(u.Network) > 0 && profile == sandbox.Offline:
		checks = append(checks, wrong(key+".network", "the profile offline has no network; use workspace"))
	case len(u.Network) > 0 && missing == sandbox.Weaker:
		checks = append(checks, wrong(key+".network", "the weaker sandbox has no network; write network: [], or sandbox.missing: refuse"))
	}
	return checks
}

// asWorktree writes true and false for a worktree as the mapping or the null that they stand for.
// The problem is why a value is neither of them nor a mapping; "" for none.
func asWorktree(n *yaml.Node, want reflect.Type) (problem string) {
	actual := target(n)
	if want != reflect.TypeFor[Worktree]() || isNull(actual) || actual.Kind == yaml.MappingNode {
		return ""
	}
	on, err := strconv.ParseBool(actual.Value)
	switch {
	case actual.Kind != yaml.ScalarNode || err != nil:
		return "is true, false, or a section such as {copy: [node_modules]}"
	case on:
		*n = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column}
	default:
		*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null", Line: n.Line, Column: n.Column}
	}
	return ""
}

// settingsOfWorktree lists whether there is a worktree, and how it is made.
func settingsOfWorktree(w *Worktree, key string) []Setting {
	list := []Setting{{Key: key, Value: w != nil, raw: w != nil}}
	if w == nil || reflect.ValueOf(*w).IsZero() {
		return list
	}
	set := settingsOf(reflect.ValueOf(*w), key+".")
	return append(list, slices.DeleteFunc(set, func(s Setting) bool { return reflect.ValueOf(s.raw).IsZero() })...)
}
