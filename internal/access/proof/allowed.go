package proof

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// ParseAllowed reads a list of approvers and their keys: lines as ssh-keygen reads them in a file of allowed signers,
// the name of the approver and a public key. The line of a passkey has the name and what mailboxd web prints. Of options,
// only namespaces is known.
func ParseAllowed(text string) (list []Approver, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if list, err = withAllowed(list, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("it names no approver")
	}
	return list, nil
}

// withAllowed adds the approver of a line, or a key of a known one.
func withAllowed(list []Approver, line string) ([]Approver, error) {
	name, key, found := strings.Cut(line, " ")
	if key = strings.TrimSpace(key); !found || key == "" {
		return nil, errors.New("want the name of an approver and a public key")
	}
	var passkeys []Passkey
	var keys []ssh.PublicKey
	if IsPasskey(key) {
		passkey, err := ParsePasskey(key)
		if err != nil {
			return nil, err
		}
		passkeys = append(passkeys, passkey)
	} else {
		public, err := parseAllowedKey(key)
		if err != nil {
			return nil, err
		}
		keys = append(keys, public)
	}
	for name := range strings.SplitSeq(name, ",") {
		at := slices.IndexFunc(list, func(a Approver) bool { return a.Name == name })
		if at < 0 {
			list, at = append(list, Approver{Name: name}), len(list)
		}
		list[at].Keys, list[at].Passkeys = append(list[at].Keys, keys...), append(list[at].Passkeys, passkeys...)
	}
	return list, nil
}

// parseAllowedKey reads a public key, perhaps with the option that it is for approvals.
func parseAllowedKey(line string) (ssh.PublicKey, error) {
	_, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return nil, errors.New("is no public key such as ssh-keygen writes to a .pub file")
	}
	for _, option := range options {
		if option != `namespaces="`+Namespace+`"` {
			return nil, fmt.Errorf("has the option %q; only namespaces=%q is known", option, Namespace)
		}
		line = strings.TrimSpace(strings.TrimPrefix(line, option))
	}
	return ParseKey(line)
}
