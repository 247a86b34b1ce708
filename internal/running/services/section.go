package services

import (
	"time"

	"mailboxd/internal/decisions/task"
)

// idle is how long a service may be silent unless the configuration says otherwise.
const idle = 5 * time.Minute

// HTTP is the section of an agent that is an HTTP service.
type HTTP struct {
	URL           string        `mapstructure:"url"`
	BearerEnv     string        `mapstructure:"bearer_env"`
	Mode          string        `mapstructure:"mode"`
	HeaderTimeout time.Duration `mapstructure:"header_timeout"`
	IdleTimeout   time.Duration `mapstructure:"idle_timeout"`
}

// DefaultHTTP has the defaults of the section.
func DefaultHTTP() HTTP {
	return HTTP{Mode: string(task.ServiceJSON), HeaderTimeout: idle, IdleTimeout: idle}
}

// Check returns all that is wrong with the section but its mode.
func (h *HTTP) Check() (found []Problem) {
	for _, limit := range []struct {
		key string
		of  time.Duration
	}{{"header_timeout", h.HeaderTimeout}, {"idle_timeout", h.IdleTimeout}} {
		if limit.of < 0 {
			found = append(found, Problem{limit.key, "must be at least 0"})
		}
	}
	return append(found, CheckAddress(h.URL, h.BearerEnv)...)
}

// Service returns the service that is asked.
func (h *HTTP) Service() *task.Service {
	return &task.Service{
		URL: h.URL, BearerEnv: h.BearerEnv, Mode: task.ServiceMode(h.Mode),
		HeaderTimeout: task.Duration(h.HeaderTimeout), IdleTimeout: task.Duration(h.IdleTimeout),
	}
}

// A2A is the section of an agent that speaks A2A.
type A2A struct {
	URL       string `mapstructure:"url"`
	BearerEnv string `mapstructure:"bearer_env"`
}

// Check returns all that is wrong with the section.
func (a *A2A) Check() []Problem { return CheckAddress(a.URL, a.BearerEnv) }

// Service returns the agent that is asked.
func (a *A2A) Service() *task.Service {
	return &task.Service{
		URL: a.URL, BearerEnv: a.BearerEnv, Mode: task.ServiceA2A, HeaderTimeout: task.Duration(idle), IdleTimeout: task.Duration(idle),
	}
}
