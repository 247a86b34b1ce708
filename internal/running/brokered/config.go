package brokered

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/services"
)

// Tools are those that a broker offers a run.
type Tools struct {
	List    []string          // such as mcp:github/get_issue
	Servers []services.Server // of the agent
	Known   string            // the directory that remembers tools; "": nothing does

	// Environment returns the environment of a server, for its list of variables.
	Environment func(list []string) ([]string, error)
}

// KnownDir returns the directory in a state directory that remembers tools.
func KnownDir(state string) string { return filepath.Join(state, "tools") }

// Config returns the configuration of a broker for a run. Its processes belong to the run of the keeper in
// a directory, which may be another one.
func (t Tools) Config(j task.Job, dir, token string) (broker.Config, error) {
	c := broker.Config{Dir: j.Dir, Token: token, Tools: t.List, Calls: j.Calls, Known: t.Known}
	for _, server := range services.Named(t.Servers, t.List) {
		own, err := t.server(server, dir)
		if err != nil {
			return c, err
		}
		c.Servers = append(c.Servers, own)
	}
	return c, nil
}

// server returns a server with the variables that the daemon has for it. By the run directory among
// them, the keeper knows the processes of the server.
func (t Tools) server(s services.Server, dir string) (broker.Server, error) {
	service, list := s.Tool("", "")
	env, err := t.Environment(list)
	if err != nil {
		return broker.Server{}, err
	}
	own := broker.Server{Service: *service, Env: append(env, runner.DirVariable+"="+dir), Bearer: os.Getenv(s.BearerEnv)}
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(service.Env, name) {
			own.Secrets = append(own.Secrets, entry)
		}
	}
	if own.Bearer != "" {
		own.Secrets = append(own.Secrets, s.BearerEnv+"="+own.Bearer)
	}
	return own, nil
}
