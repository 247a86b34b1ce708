package config

import (
	"fmt"
	"os"
	"os/user"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// An Approver may approve and deny tasks: a name, as in human_approver, and the user of
// this machine with that name.
type Approver struct {
	Name string `mapstructure:"name"`
	UID  int    `mapstructure:"uid"`
}

// noUID stands for a missing uid, since zero is root.
const noUID = -1

// fillApprover is a decoding hook: a uid that is left out is nobody's.
func fillApprover(from, to reflect.Value) (any, error) {
	if to.Type() == reflect.TypeFor[Approver]() && from.Kind() == reflect.Map {
		to.Set(reflect.ValueOf(Approver{UID: noUID}))
	}
	return from.Interface(), nil
}

// EffectiveApprovers returns the configured approvers, or else the user of this process.
func (c *Config) EffectiveApprovers() []Approver {
	if len(c.Approvers) > 0 {
		return c.Approvers
	}
	uid := os.Getuid()
	name := strconv.Itoa(uid) // a user without a name still has a number
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return []Approver{{Name: name, UID: uid}}
}

// ApproverNames returns the approver names of a user; none for other users.
func (c *Config) ApproverNames(uid int) (names []string) {
	for _, a := range c.EffectiveApprovers() {
		if a.UID == uid && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	return names
}

// checkApprovers refuses approvers without a user or a name, and those named like an
// agent: what an agent asks for, it must not approve.
func (c *Config) checkApprovers() (checks []error) {
	for i, a := range c.EffectiveApprovers() {
		key := fmt.Sprintf("approvers[%d]", i)
		if a.Name == "" || strings.ContainsFunc(a.Name, unicode.IsControl) {
			checks = append(checks, wrong(key+".name", "must be text without control characters"))
		}
		if a.UID < 0 {
			checks = append(checks, wrong(key+".uid", "required, the number that id -u prints"))
		}
		if slices.ContainsFunc(c.Agents, func(e Entry) bool { return strings.EqualFold(e.ID, a.Name) }) {
			checks = append(checks, wrong(key+".name", "%q is that of an agent, and no agent approves anything", a.Name))
		}
	}
	return checks
}
