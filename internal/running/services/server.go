// Package services has the sections of the configuration about agents that are no program, and the MCP servers whose
// tools they are or may use. It checks them, and what names them.
package services

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/dial"
)

// A Server is an MCP server of the configuration: a child process, or one with an address.
type Server struct {
	ID        string   `mapstructure:"id"`
	Command   []string `mapstructure:"command"`
	Env       []string `mapstructure:"env"` // of the child, as exec.env
	URL       string   `mapstructure:"url"`
	BearerEnv string   `mapstructure:"bearer_env"`
}

// A Problem is what is wrong with a key of a section.
type Problem struct{ Key, Text string }

// serverID is what an id of a server may be. Two underscores divide it from the name of a tool.
var serverID = regexp.MustCompile(`^[A-Za-z0-9]+([_-]?[A-Za-z0-9]+)*$`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CheckAddress refuses the address of a service, and what is not the name of the variable with its
// token; "" is none. It shows no password.
func CheckAddress(address, bearer string) (found []Problem) {
	if err := dial.CheckURL(address); err != nil {
		if u, wrong := url.Parse(address); wrong == nil {
			address = u.Redacted()
		}
		found = append(found, Problem{"url", fmt.Sprintf("%q %v", address, err)})
	}
	if bearer != "" && !variableName.MatchString(bearer) {
		found = append(found, Problem{"bearer_env", fmt.Sprintf("%q is not the name of a variable", bearer)})
	}
	return found
}

// CheckCall refuses a call of no tool, and templates that can't be filled in.
func CheckCall(tool, arguments string) (found []Problem) {
	if tool == "" {
		found = append(found, Problem{"tool", "required, the name of a tool of the server"})
	}
	if arguments != "" {
		if err := CheckArguments(jsontext.Value(arguments)); err != nil {
			found = append(found, Problem{"arguments", err.Error()})
		}
	}
	return found
}

// Check returns all that is wrong with a server.
func (s Server) Check() (found []Problem) {
	note := func(wrong bool, key, format string, args ...any) {
		if wrong {
			found = append(found, Problem{key, fmt.Sprintf(format, args...)})
		}
	}
	note(!serverID.MatchString(s.ID), "id", "%q is not an id of letters, digits, and single - and _ between them", s.ID)
	child := len(s.Command) > 0
	note(child == (s.URL != ""), "command", "a server has a command or a url, one of them")
	note(child && s.BearerEnv != "", "bearer_env", "is for a server with a url; name it in env")
	note(!child && len(s.Env) > 0, "env", "is for a server with a command")
	for i, entry := range s.Env {
		name, _, _ := strings.Cut(entry, "=")
		reserved := !variableName.MatchString(name) || strings.HasPrefix(name, "MAILBOX_")
		note(reserved, fmt.Sprintf("env[%d]", i), "is neither KEY nor KEY=VALUE of a variable that can be set")
	}
	if s.URL != "" {
		found = append(found, CheckAddress(s.URL, s.BearerEnv)...)
	}
	return found
}

// Tool returns a tool of the server as an agent, and the variables that its host gets.
func (s Server) Tool(name, arguments string) (*task.Service, []string) {
	service := &task.Service{Server: s.ID, Tool: name, URL: s.URL, BearerEnv: s.BearerEnv, Command: slices.Clone(s.Command)}
	if arguments != "" {
		service.Arguments = jsontext.Value(arguments)
	}
	for _, entry := range s.Env {
		variable, _, _ := strings.Cut(entry, "=")
		service.Env = append(service.Env, variable)
	}
	return service, slices.Clone(s.Env)
}
