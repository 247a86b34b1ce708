package config

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestApproversAreKnownByTheirUser(t *testing.T) {
	c, err := load(t, `approvers: [{name: sre, uid: 1000}, {name: ada, uid: 1000}, {name: sre, uid: 0}]`)
	if err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[int][]string{1000: {"sre", "ada"}, 0: {"sre"}, 7: nil} {
		if got := c.ApproverNames(uid); !slices.Equal(got, want) {
			t.Errorf("approverNames(%d) = %q; want %q", uid, got, want)
		}
	}
}

func TestWithoutApproversTheUserWeRunAsIsOne(t *testing.T) {
	c, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.ApproverNames(os.Getuid()); len(got) != 1 || got[0] == "" {
		t.Errorf("approverNames(own user) = %q; want the login name", got)
	}
	if got := c.ApproverNames(os.Getuid() + 1); got != nil {
		t.Errorf("approverNames(somebody else) = %q; want none", got)
	}
}

func TestAnApproverIsSomebodyAndNoAgent(t *testing.T) {
	for yaml, want := range map[string]string{
		`approvers: [{name: ada}]`:                                                           `approvers[0].uid: required`,
		`approvers: [{uid: 7}]`:                                                              `approvers[0].name: must be text`,
		`approvers: [{name: "a\nb", uid: 7}]`:                                                "name: must be text without control characters",
		`approvers: [{name: ada, uid: -2}]`:                                                  "uid: required",
		`approvers: [{name: ada, uid: 1, proof: person, keys: [passkey]}]`:                   "approvers[0].keys[0]: is no line of a passkey",
		`approvers: [{name: ada, uid: 1, proof: person, keys: [passkey example.com YQ YQ]}]`: `keys[0]: "example.com" is not the host of a page`,
		`approvers: [{name: ada, uid: 1, gid: 2}]`:                                           "approvers[0].gid: no such key",
		`{approvers: [{name: Bot, uid: 7}], agents: [{id: bot}]}`:                            `approvers[0].name: "Bot" is that of an agent`,
		`{policy: {approval_ttl: -1s}}`:                                                      "policy.approval_ttl: must be at least 0",
		`{policy: {approval_ttl: 7}}`:                                                        "7 has no unit",
	} {
		if _, err := load(t, yaml); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("load(%s) = %v; want %q in it", yaml, err, want)
		}
	}
}
