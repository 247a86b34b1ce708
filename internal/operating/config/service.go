package config

import (
	"reflect"
	"slices"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/services"
)

// fillHTTP is a decoding hook like fillAgent for the section.
func fillHTTP(from, to reflect.Value) (any, error) {
	if to.Type() == reflect.TypeFor[services.HTTP]() && from.Kind() == reflect.Map {
		to.Set(reflect.ValueOf(services.DefaultHTTP()))
	}
	return from.Interface(), nil
}

const severalServices = "an agent has http, a2a, mcp or remote, one of them"

// checkService refuses what no service can be asked with.
func (e Entry) checkService(key string) (checks []error) {
	note := func(part string, found []services.Problem) {
		for _, p := range found {
			checks = append(checks, wrong(key+part+p.Key, "%s", p.Text))
		}
	}
	if e.HTTP != nil {
		checks = append(checks, choice(key+".http.mode", e.HTTP.Mode))
		note(".http.", e.HTTP.Check())
	}
	if e.A2A != nil {
		note(".a2a.", e.A2A.Check())
	}
	if e.A2A != nil && e.HTTP != nil {
		checks = append(checks, wrong(key+".a2a", severalServices))
	}
	return checks
}

// serviceOf returns what is asked instead of a program, and the variables that its host gets; nil for
// a program.
func serviceOf(c *Config, e Entry) (s *task.Service, env []string) {
	switch {
	case e.A2A != nil:
		s = e.A2A.Service()
	case e.HTTP != nil:
		s = e.HTTP.Service()
	case e.MCP != nil:
		server := services.Server{ID: e.MCP.Server} // checkTools says that there is none
		if i := slices.IndexFunc(c.Tools, func(s services.Server) bool { return s.ID == e.MCP.Server }); i >= 0 {
			server = c.Tools[i]
		}
		s, env = server.Tool(e.MCP.Tool, string(e.MCP.Arguments))
		c.resolveCommand(s.Command)
	default:
		return nil, nil
	}
	if s.Idempotent = e.Idempotent; s.BearerEnv != "" {
		env = append(env, s.BearerEnv)
	}
	return s, env
}
