package proof_test

import (
	"strings"
	"testing"

	"mailboxd/internal/access/proof"
)

const (
	edKey    = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
	otherKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB8eHRwbGhkYFxYVFBMSERAPDg0MCwoJCAcGBQQDAgEA"
)

func TestApproversAreReadAsAllowedSigners(t *testing.T) {
	list, err := proof.ParseAllowed("# ours\n\nalice " + edKey + " alice@desk\nalice,bob   namespaces=\"approval@mailboxd\" " + otherKey + "\r\n")
	if err != nil || len(list) != 2 {
		t.Fatalf("ParseAllowed = %v, %v; want two approvers", list, err)
	}
	if list[0].Name != "alice" || len(list[0].Keys) != 2 || list[1].Name != "bob" || len(list[1].Keys) != 1 {
		t.Errorf("ParseAllowed = %+v; want alice with two keys and bob with one", list)
	}
}

func TestAListOfApproversWithAMistakeIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "names no approver",
		"# nobody\n":                        "names no approver",
		"alice\n":                           "line 1: want the name",
		"\nalice hello\n":                   "line 2: is no public key",
		"alice cert-authority " + edKey:     "has the option",
		`alice namespaces="git" ` + edKey:   "has the option",
		"alice passkey mbx-a.localhost x y": "the id of the passkey",
	} {
		if list, err := proof.ParseAllowed(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseAllowed(%q) = %v, %v; want an error with %q", text, list, err, want)
		}
	}
}
