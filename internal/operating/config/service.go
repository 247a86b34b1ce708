package config

import (
	"reflect"
	"slices"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/external"
)

// HTTP is the section of an agent that is an HTTP service.
type HTTP struct {
	URL           string        `mapstructure:"url"`
	BearerEnv     string        `mapstructure:"bearer_env"`
	Mode          string        `mapstructure:"mode"`
	HeaderTimeout time.Duration `mapstructure:"header_timeout"`
	IdleTimeout   time.Duration `mapstructure:"idle_timeout"`
}

// fillHTTP is a decoding hook like fillAgent for the section.
func fillHTTP(from, to reflect.Value) (any, error) {
	if to.Type() == reflect.TypeFor[HTTP]() && from.Kind() == reflect.Map {
		to.Set(reflect.ValueOf(HTTP{Mode: string(task.ServiceJSON), HeaderTimeout: 5 * time.Minute, IdleTimeout: 5 * time.Minute}))
	}
	return from.Interface(), nil
}

// check refuses what no service can be asked with.
func (h *HTTP) check(key string) []error {
	checks := []error{
		choice(key+".mode", h.Mode),
		atLeast(key+".header_timeout", int64(h.HeaderTimeout), 0), atLeast(key+".idle_timeout", int64(h.IdleTimeout), 0),
	}
	for _, p := range external.CheckAddress(h.URL, h.BearerEnv) {
		checks = append(checks, wrong(key+"."+p.Key, "%s", p.Text))
	}
	return checks
}

// serviceOf returns what is asked instead of a program, and the variables that its host gets; nil for
// a program.
func serviceOf(c *Config, e Entry) (s *task.Service, env []string) {
	if m := e.MCP; m != nil {
		server := external.Server{ID: m.Server} // checkTools says that there is none
		if i := slices.IndexFunc(c.Tools, func(s external.Server) bool { return s.ID == m.Server }); i >= 0 {
			server = c.Tools[i]
		}
		s, env = server.Tool(m.Tool, string(m.Arguments))
		s.Idempotent = e.Idempotent
		c.resolveCommand(s.Command)
	}
	if h := e.HTTP; h != nil {
		s = &task.Service{
			URL: h.URL, BearerEnv: h.BearerEnv, Mode: task.ServiceMode(h.Mode),
			HeaderTimeout: task.Duration(h.HeaderTimeout), IdleTimeout: task.Duration(h.IdleTimeout),
			Idempotent: e.Idempotent,
		}
	}
	if s != nil && s.BearerEnv != "" {
		env = append(env, s.BearerEnv)
	}
	return s, env
}
