package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
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
		case !s.hasSecret() && len(s.Keys) == 0:
			checks = append(checks, wrong(key, "needs secret_env, secret_file or keys"))
		}
		checks = append(checks, s.checkKeys(key)...)
	}
	return checks
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
