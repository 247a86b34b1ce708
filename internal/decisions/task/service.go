package task

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A Service is what an agent is that is no program: an HTTP service, an agent of A2A, or a tool of an MCP server.
// Only the operator's configuration makes one. It has names of variables, and never their values.
type Service struct {
	URL       string `json:"url,omitempty"`        // of the HTTP service, of the agent, or of the MCP server
	BearerEnv string `json:"bearer_env,omitempty"` // the variable with the token for the URL; "": none

	Mode          ServiceMode `json:"mode,omitempty"`          // of an HTTP service
	HeaderTimeout Duration    `json:"header_timeout,omitzero"` // until its answer begins
	IdleTimeout   Duration    `json:"idle_timeout,omitzero"`   // between two parts of its answer
	Idempotent    bool        `json:"idempotent,omitzero"`     // the same key may be sent again

	Card string `json:"card,omitempty"` // the SHA-256 of the card of an agent of A2A, in a plan; "": it wasn't read

	Server    string         `json:"server,omitempty"`  // the id of an MCP server in the section tools; "": an HTTP service
	Command   []string       `json:"command,omitempty"` // of a server that runs as a child of the host
	Env       []string       `json:"env,omitempty"`     // the names of the variables that this child gets
	Tool      string         `json:"tool,omitempty"`
	Arguments jsontext.Value `json:"arguments,omitempty"` // an object; its texts are templates over the request
}

// Section returns the key of the configuration that makes the service: http, a2a or mcp.
func (s Service) Section() string {
	switch {
	case s.Server != "":
		return "mcp"
	case s.Mode == ServiceA2A:
		return "a2a"
	}
	return "http"
}

// A ServiceMode is how an HTTP service answers.
type ServiceMode string

// The modes.
const (
	ServiceJSON   ServiceMode = "json"   // with one JSON object
	ServiceStream ServiceMode = "stream" // with server-sent events
	ServicePoll   ServiceMode = "poll"   // with the address of its answer

	ServiceA2A ServiceMode = "a2a" // it is an agent of A2A; no HTTP service has this mode
)

// A Duration is a time.Duration whose JSON is a text such as "5m0s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	value, err := time.ParseDuration(string(text))
	*d = Duration(value)
	return err
}

// ServiceModes returns the names of the modes of HTTP services.
func ServiceModes() []string {
	return []string{string(ServiceJSON), string(ServiceStream), string(ServicePoll)}
}
