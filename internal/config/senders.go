package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

func (c *Config) checkSenders() error {
	for i, s := range c.Senders {
		var why error
		switch {
		case s.Name == "":
			why = errors.New("name: required")
		case slices.IndexFunc(c.Senders, func(other Sender) bool { return other.Name == s.Name }) != i:
			why = errors.New("name: is there twice")
		case (s.SecretEnv == "") == (s.SecretFile == ""):
			why = errors.New("needs secret_env or secret_file, one of them")
		}
		if why != nil {
			return fmt.Errorf("senders[%d] %q: %w", i, s.Name, why)
		}
	}
	return nil
}

// Secrets reads the secrets of the senders by their names. Only the daemon reads them.
func (c *Config) Secrets() (map[string]string, error) {
	secrets := map[string]string{}
	for i, s := range c.Senders {
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
