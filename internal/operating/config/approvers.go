package config

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

	"github.com/spf13/viper"

	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/task"
)

// An Approver may approve and deny tasks: a name, as in human_approver, and the user of
// this machine with that name.
type Approver struct {
	Name  string   `mapstructure:"name"`
	UID   int      `mapstructure:"uid"`
	Proof string   `mapstructure:"proof"` // none, terminal, ssh or person; "": none
	Keys  []string `mapstructure:"keys"`  // public keys, as in authorized_keys, and passkeys, as mailboxd web prints them
}

// noUID stands for a missing uid, since zero is root.
const noUID = -1

// sameProof reports whether two approvers prove their decisions in the same way.
func (a Approver) sameProof(b Approver) bool {
	return a.Proof == b.Proof && slices.Equal(a.Keys, b.Keys)
}

// fillApprover is a decoding hook: a missing uid means no user.
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

// readApproversFile reads the approvers from their own file, if one is configured. A mistake in
// it leaves no approver.
func (c *Config) readApproversFile() []error {
	if c.ApproversFile == "" {
		return nil
	}
	if len(c.Approvers) > 0 {
		return []error{wrong("approvers_file", "approvers are also in this file: write them in one of the two")}
	}
	c.ApproversFile = c.Resolve(c.ApproversFile)
	list, err := readApprovers(c.ApproversFile)
	if err != nil {
		return []error{wrong("approvers_file", "%v", err)}
	}
	c.Approvers = list
	return nil
}

// readApprovers reads a file that has a list of approvers and nothing else.
func readApprovers(path string) ([]Approver, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := parseTree(path, text)
	values, err := t.values()
	if err == nil && len(t.mistakes) > 0 {
		err = t.mistakes
	}
	if err != nil {
		return nil, err
	}
	for key := range values {
		if key != "approvers" {
			return nil, fmt.Errorf("%s: %s: only approvers may be in this file", path, key)
		}
	}
	v := viper.New()
	if err := v.MergeConfigMap(values); err != nil {
		return nil, err
	}
	read, _, err := decodeConfig(v)
	if err == nil && len(read.Approvers) == 0 {
		err = errors.New("has no approvers")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return read.Approvers, nil
}

// Proofs converts the approvers to those of package proof.
func (c *Config) Proofs(mailbox string) proof.Approvers {
	list := proof.Approvers{Mailbox: mailbox, Validity: c.Policy.ApprovalTTL}
	list.Self, _ = task.ParseSelfRule(c.Approval.Self) // check has seen to it
	for _, a := range c.EffectiveApprovers() {
		level, _ := task.ParseProofLevel(a.Proof) // check has seen to it
		approver := proof.Approver{Name: a.Name, Min: level, User: c.ApproverNames(a.UID)}
		if u, err := user.LookupId(strconv.Itoa(a.UID)); err == nil {
			approver.User = append(approver.User, u.Username)
		}
		for _, line := range a.Keys {
			if passkey, err := proof.ParsePasskey(line); err == nil {
				approver.Passkeys = append(approver.Passkeys, passkey)
			} else if key, err := proof.ParseKey(line); err == nil {
				approver.Keys = append(approver.Keys, key)
			}
		}
		list.List = append(list.List, approver)
	}
	return list
}

// checkProof returns what keeps a proof from being verified.
func (a Approver) checkProof(key string) (checks []error) {
	level, err := task.ParseProofLevel(a.Proof)
	if err != nil {
		return []error{wrong(key+".proof", "%v", err)}
	}
	for i, line := range a.Keys {
		if proof.IsPasskey(line) {
			if _, err := proof.ParsePasskey(line); err != nil {
				checks = append(checks, wrong(fmt.Sprintf("%s.keys[%d]", key, i), "%v", err))
			}
			continue
		}
		public, err := proof.ParseKey(line)
		switch {
		case err != nil:
			checks = append(checks, wrong(fmt.Sprintf("%s.keys[%d]", key, i), "%v", err))
		case level == task.ProofPerson && !proof.IsHardware(public):
			checks = append(checks, wrong(fmt.Sprintf("%s.keys[%d]", key, i), "proof: person needs hardware keys, such as ssh-keygen -t ed25519-sk makes, or passkeys"))
		}
	}
	if level >= task.ProofKey && len(a.Keys) == 0 {
		checks = append(checks, wrong(key+".proof", "%s needs a public key or a passkey in keys", level))
	}
	return checks
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
		checks = append(checks, a.checkProof(key)...)
		if slices.ContainsFunc(c.Approvers[:min(i, len(c.Approvers))], func(b Approver) bool { return a.Name == b.Name && !a.sameProof(b) }) {
			checks = append(checks, wrong(key+".proof", "%q is there twice with different proofs: the name must prove the same from each user", a.Name))
		}
		if slices.ContainsFunc(c.Agents, func(e Entry) bool { return strings.EqualFold(e.ID, a.Name) }) {
			checks = append(checks, wrong(key+".name", "%q is that of an agent, and no agent approves anything", a.Name))
		}
	}
	return checks
}
