package proof

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// ErrNoAgent says that no ssh-agent answers.
var ErrNoAgent = errors.New("no ssh-agent answers: start one (eval $(ssh-agent)), add the key (ssh-add), and see that SSH_AUTH_SOCK names its socket")

// SignByAgent has the ssh-agent at a socket sign a statement, with the first of the keys that it
// has; keys are lines of an authorized_keys file. ctx ends the wait for an agent that asks its
// user.
func SignByAgent(ctx context.Context, socket string, keys []string, s Statement) ([]byte, error) {
	if socket == "" {
		return nil, ErrNoAgent
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNoAgent, err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		return nil, fmt.Errorf("list the keys of the ssh-agent: %w", err)
	}
	for _, line := range keys {
		key, err := ParseKey(line)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", line, err)
		}
		for _, signer := range signers {
			if bytes.Equal(signer.PublicKey().Marshal(), key.Marshal()) {
				return Sign(signer, s)
			}
		}
	}
	return nil, fmt.Errorf("the ssh-agent has none of your %d approver keys: add one with ssh-add", len(keys))
}

// Line returns a key as a line of an authorized_keys file has it, without its end.
func Line(key ssh.PublicKey) string {
	return strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(key)), "\n")
}

// ParseKey reads a public key as a line of an authorized_keys file has it. Options are refused:
// none has a meaning here, and no-touch-required would take the person out of the proof.
func ParseKey(line string) (ssh.PublicKey, error) {
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	switch {
	case err != nil:
		return nil, errors.New("is no public key such as ssh-keygen writes to a .pub file")
	case len(options) > 0:
		return nil, fmt.Errorf("has the option %q, and takes none", options[0])
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("is more than one line")
	}
	if _, isCertificate := key.(*ssh.Certificate); isCertificate {
		return nil, errors.New("is a certificate: name the key itself")
	}
	return key, nil
}
