package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"mailboxd/envelope"
)

func (c *Config) checkSenders() (checks []error) {
	for i, s := range c.Senders {
		key := fmt.Sprintf("senders[%d]", i)
		switch {
		case s.Name == "":
			checks = append(checks, wrong(key+".name", "required"))
		case slices.IndexFunc(c.Senders, func(other Sender) bool { return other.Name == s.Name }) != i:
			checks = append(checks, wrong(key+".name", "%q is there twice", s.Name))
		}
		switch {
		case s.SecretEnv != "" && s.SecretFile != "":
			checks = append(checks, wrong(key, "needs secret_env or secret_file, one of them"))
		case !s.hasSecret() && len(s.Keys) == 0 && s.Token == "":
			checks = append(checks, wrong(key, "needs secret_env, secret_file, keys or token"))
		}
		checks = append(checks, s.checkKeys(key)...)
		checks = append(checks, s.checkToken(key, i, c)...)
	}
	return checks
}

// loginName is what names a sender at the gateway: it becomes a part of names of conversations, before ":".
var loginName = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,64}$`)

// IsLoginName reports whether a sender of that name can log in at the gateway.
func IsLoginName(name string) bool { return loginName.MatchString(name) && name != envelope.Mailboxd }

// checkToken refuses a login of a sender at the gateway that can't work.
func (s Sender) checkToken(key string, i int, c *Config) (checks []error) {
	switch digest, err := hex.DecodeString(s.Token); {
	case s.Token == "" && len(s.Agents) > 0:
		checks = append(checks, wrong(key+".agents", "is for a sender with a token"))
	case s.Token == "":
	case err != nil || len(digest) != sha256.Size:
		checks = append(checks, wrong(key+".token", "must be a SHA-256 in hexadecimal; mailboxd gateway token %s prints one", s.Name))
	case slices.IndexFunc(c.Senders, func(other Sender) bool { return strings.EqualFold(other.Token, s.Token) }) != i:
		checks = append(checks, wrong(key+".token", "is there twice; each sender has a token of its own"))
	case s.hasSecret():
		checks = append(checks, wrong(key+".token", "is for a sender without a secret: the gateway would need the secret"))
	case !IsLoginName(s.Name):
		checks = append(checks, wrong(key+".name", "must be 1 to 64 of A-Z a-z 0-9 . _ @ - for a sender with a token, and not mailboxd"))
	}
	for j, id := range s.Agents {
		if !slices.ContainsFunc(c.Agents, func(e Entry) bool { return e.ID == id }) {
			checks = append(checks, wrong(fmt.Sprintf("%s.agents[%d]", key, j), "no agent %q is configured", id))
		}
	}
	return checks
}

// A Login is a sender that logs in at the gateway.
type Login struct {
	Name   string
	Digest [sha256.Size]byte // of its token
	May    []string          // the agents that it may ask
}

// Logins returns the senders with a token, and which agents each may ask: those of its list, or all, as
// far as policy.trust lets it. It reads the manifests of the agents.
func Logins(c Config) (logins []Login) {
	agents, rules := c.ReadAgents(), c.Policy.Rules()
	domains := map[string]string{}
	for _, m := range agents {
		if manifest := m.Subject.Manifest; manifest != nil {
			domains[m.Binding.ID] = manifest.TrustDomain
		}
	}
	for _, s := range c.Senders {
		if s.Token == "" {
			continue
		}
		one := Login{Name: s.Name}
		digest, _ := hex.DecodeString(s.Token) // checkToken has refused what can't be decoded
		copy(one.Digest[:], digest)
		for _, m := range agents {
			id := m.Binding.ID
			if (len(s.Agents) == 0 || slices.Contains(s.Agents, id)) && rules.Trusts(domains[s.Name], domains[id]) {
				one.May = append(one.May, id)
			}
		}
		logins = append(logins, one)
	}
	return logins
}

// hasSecret reports whether exactly one place of a secret is named.
func (s Sender) hasSecret() bool { return (s.SecretEnv == "") != (s.SecretFile == "") }

// Secrets reads the secrets of the senders by their names. Only the daemon reads them.
func (c *Config) Secrets() (map[string]string, error) {
	secrets := map[string]string{}
	for i, s := range c.Senders {
		if !s.hasSecret() {
			continue
		}
		secret, err := c.secret(s)
		if err == nil && secret == "" {
			err = errors.New("is empty")
		}
		if err != nil {
			return nil, fmt.Errorf("senders[%d] %q: %w", i, s.Name, err)
		}
		secrets[s.Name] = secret
	}
	return secrets, nil
}

func (c *Config) secret(s Sender) (string, error) {
	if s.SecretFile == "" {
		secret, ok := os.LookupEnv(s.SecretEnv)
		if !ok {
			return "", fmt.Errorf("secret_env: %s is not set", s.SecretEnv)
		}
		return secret, nil
	}
	text, err := os.ReadFile(c.Resolve(s.SecretFile))
	if err != nil {
		return "", fmt.Errorf("secret_file: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
