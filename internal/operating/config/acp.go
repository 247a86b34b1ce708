package config

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
)

// ACP is the section with the rules for an agent's calls of tools.
type ACP struct {
	Rules      []CallRule    `mapstructure:"rules"`
	Otherwise  string        `mapstructure:"otherwise"`
	AskTimeout time.Duration `mapstructure:"ask_timeout"`
}

// A CallRule decides some calls of one kind.
type CallRule struct {
	Kind    string   `mapstructure:"kind"`
	MCP     string   `mapstructure:"mcp"`
	Paths   []string `mapstructure:"paths"`
	Command string   `mapstructure:"command"`
	Do      string   `mapstructure:"do"`
}

// acpDefaults has the defaults of the section.
func acpDefaults() ACP { return ACP{Otherwise: string(task.RejectCall), AskTimeout: 30 * time.Minute} }

// fillACP is a decoding hook like fillAgent for the section.
func fillACP(from, to reflect.Value) (any, error) {
	if to.Type() == reflect.TypeFor[ACP]() && from.Kind() == reflect.Map {
		to.Set(reflect.ValueOf(acpDefaults()))
	}
	return from.Interface(), nil
}

// rules returns the rules as policy has them; nil without the section.
func (a *ACP) rules() *task.CallRules {
	if a == nil {
		return nil
	}
	rules := &task.CallRules{Otherwise: task.CallAnswer(a.Otherwise), Timeout: a.AskTimeout}
	for _, r := range a.Rules {
		rules.Rules = append(rules.Rules, task.CallRule{
			Kind: task.CallKind(r.Kind), MCP: r.MCP, Paths: slices.Clone(r.Paths), Command: r.Command, Do: task.CallAnswer(r.Do),
		})
	}
	return rules
}

// callRules returns the rules of an entry. The program of a profile that asks gets the defaults without
// the section.
func (e Entry) callRules() *task.CallRules {
	if e.ACP == nil && agent.Profile(e.Profile).Asks() {
		defaults := acpDefaults()
		return defaults.rules()
	}
	return e.ACP.rules()
}

// check refuses rules that can match nothing, or more than they seem to.
func (a *ACP) check(key string) []error {
	checks := []error{choice(key+".otherwise", a.Otherwise)}
	if a.AskTimeout < 0 {
		checks = append(checks, wrong(key+".ask_timeout", "%s is negative", a.AskTimeout))
	}
	for i, r := range a.Rules {
		checks = append(checks, r.check(fmt.Sprintf("%s.rules[%d]", key, i))...)
	}
	return checks
}

func (r CallRule) check(key string) []error {
	checks := []error{choice(key+".do", r.Do)}
	if r.MCP == "" {
		checks = append(checks, choice(key+".kind", r.Kind))
	}
	for i, pattern := range r.Paths {
		checks = append(checks, checkPathPattern(fmt.Sprintf("%s.paths[%d]", key, i), pattern))
	}
	switch words := strings.Fields(r.Command); {
	case r.Command == "" || r.MCP != "":
	case r.Kind != string(task.CallExecute):
		checks = append(checks, wrong(key+".command", "only calls of the kind execute have a command"))
	case len(words) == 0 || words[0] == "*":
		checks = append(checks, wrong(key+".command", "the first word is a program, not *"))
	}
	return checks
}

// checkPathPattern refuses what no path in the directory of a run can match.
func checkPathPattern(key, pattern string) error {
	if pattern == "" || path.IsAbs(pattern) || path.Clean(pattern) != pattern || strings.HasPrefix(pattern, "..") {
		return wrong(key, "%q is not a path relative to the directory of the run", pattern)
	}
	for element := range strings.SplitSeq(pattern, "/") {
		if _, err := path.Match(element, ""); err != nil || element != "**" && strings.Contains(element, "**") {
			return wrong(key, "%q is not a pattern; ** stands alone between two slashes", element)
		}
	}
	return nil
}

func callKinds() (names []string) {
	for _, kind := range task.CallKinds() {
		names = append(names, string(kind))
	}
	return names
}
