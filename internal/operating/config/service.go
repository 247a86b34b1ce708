package config

import (
	"net/url"
	"reflect"
	"regexp"
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

// httpDefaults has the defaults of the section.
func httpDefaults() HTTP {
	return HTTP{Mode: string(task.ServiceJSON), HeaderTimeout: 5 * time.Minute, IdleTimeout: 5 * time.Minute}
}

// serviceRetries is the default of retries for an HTTP service, whose answer another attempt may
// still find.
const serviceRetries = 2

// fillHTTP is a decoding hook like fillAgent for the section.
func fillHTTP(from, to reflect.Value) (any, error) {
	if to.Type() == reflect.TypeFor[HTTP]() && from.Kind() == reflect.Map {
		to.Set(reflect.ValueOf(httpDefaults()))
	}
	return from.Interface(), nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkAddress checks the address of a service and the variable with its token.
func checkAddress(key, address, bearer string) (checks []error) {
	if err := external.CheckURL(address); err != nil {
		shown := address
		if u, err := url.Parse(address); err == nil {
			shown = u.Redacted()
		}
		checks = append(checks, wrong(key+".url", "%q %v", shown, err))
	}
	if bearer != "" && !variableName.MatchString(bearer) {
		checks = append(checks, wrong(key+".bearer_env", "%q is not the name of a variable", bearer))
	}
	return checks
}

// check refuses what no service can be asked with.
func (h *HTTP) check(key string) []error {
	return append(checkAddress(key, h.URL, h.BearerEnv),
		choice(key+".mode", h.Mode),
		atLeast(key+".header_timeout", int64(h.HeaderTimeout), 0), atLeast(key+".idle_timeout", int64(h.IdleTimeout), 0))
}

// serviceOf returns what is asked instead of a program, and the variables that its host gets; nil for
// a program.
func serviceOf(e Entry) (s *task.Service, env []string) {
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
