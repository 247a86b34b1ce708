package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// An approver is somebody who may decide about tasks: a name, as requests give
// it in human_approver, and the user of this machine who has it.
type approver struct {
	Name string `mapstructure:"name"`
	UID  int    `mapstructure:"uid"`
}

// noUID stands for a uid that was left out: zero would be root.
const noUID = -1

// fillApprover is a decoding hook: a uid that is left out is nobody's.
func fillApprover(from, to reflect.Value) (any, error) {
	if to.Type() == reflect.TypeFor[approver]() && from.Kind() == reflect.Map {
		to.Set(reflect.ValueOf(approver{UID: noUID}))
	}
	return from.Interface(), nil
}

// approvers are those who may approve: whom the configuration names, or else
// the user we run as.
func (c *config) approvers() []approver {
	if len(c.Approvers) > 0 {
		return c.Approvers
	}
	uid := os.Getuid()
	name := strconv.Itoa(uid) // a user without a name still has a number
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return []approver{{Name: name, UID: uid}}
}

// approverNames returns the names with which a user may decide; none for who
// is no approver.
func (c *config) approverNames(uid int) (names []string) {
	for _, a := range c.approvers() {
		if a.UID == uid && !slices.Contains(names, a.Name) {
			names = append(names, a.Name)
		}
	}
	return names
}

// checkApprovers refuses approvers who could not be told from nobody, or from
// an agent: what an agent asks for, it must not approve.
func (c *config) checkApprovers() error {
	for i, a := range c.approvers() {
		var why error
		switch {
		case a.Name == "" || strings.ContainsFunc(a.Name, unicode.IsControl):
			why = errors.New("name: must be text without control characters")
		case a.UID < 0:
			why = errors.New("uid: required, the number that id -u prints")
		case slices.ContainsFunc(c.Agents, func(e agentEntry) bool { return strings.EqualFold(e.ID, a.Name) }):
			why = errors.New("name: is that of an agent, and no agent approves anything")
		}
		if why != nil {
			return fmt.Errorf("approvers[%d] %q: %w", i, a.Name, why)
		}
	}
	return nil
}
