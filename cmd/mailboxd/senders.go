package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// A sender is a participant who proves who it is (CLOWL-18).
type sender struct {
	Name       string `mapstructure:"name"`
	SecretEnv  string `mapstructure:"secret_env"`
	SecretFile string `mapstructure:"secret_file"`
}

// oversight is how long agents may argue.
type oversight struct {
	Rounds   int           `mapstructure:"rounds"`
	Patience time.Duration `mapstructure:"patience"`
}

// conversation is how long the requester may take to reply.
type conversation struct {
	QuestionTimeout time.Duration `mapstructure:"question_timeout"`
}

func (c *config) checkSenders() error {
	for i, s := range c.Senders {
		var why error
		switch {
		case s.Name == "":
			why = errors.New("name: required")
		case slices.IndexFunc(c.Senders, func(other sender) bool { return other.Name == s.Name }) != i:
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

// secrets reads what senders prove themselves with, by their names. It is read by
// whoever serves, so that nobody else needs to be able to.
func (c *config) secrets() (map[string]string, error) {
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

func (c *config) secret(s sender) (string, error) {
	if s.SecretFile == "" {
		secret, ok := os.LookupEnv(s.SecretEnv)
		if !ok {
			return "", fmt.Errorf("secret_env: %s is not set", s.SecretEnv)
		}
		return secret, nil
	}
	text, err := os.ReadFile(c.resolve(s.SecretFile))
	if err != nil {
		return "", fmt.Errorf("secret_file: %w", err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
