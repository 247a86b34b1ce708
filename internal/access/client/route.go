package client

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// A RouteQuery asks which agent would get a task.
type RouteQuery struct {
	Line string `json:"line"` // a task request, as in a task file
}

// Route returns the decision about a task line as things are now, as the data of the event
// routing.decided.
func (c *Client) Route(ctx context.Context, line string) (jsontext.Value, error) {
	var answer []byte
	err := c.post(ctx, Base+"/route", RouteQuery{Line: line}, &answer)
	return answer, err
}

// RouteOf returns the decision about a task that waits for the choice of its agent.
func (c *Client) RouteOf(ctx context.Context, id envelope.ID) (jsontext.Value, error) {
	var answer []byte
	err := c.get(ctx, taskPath(id, "/route"), nil, &answer)
	return answer, err
}

// A Card is an agent as others may find it.
type Card struct {
	Agent        string            `json:"agent_id"`
	Name         string            `json:"name,omitzero"`
	Description  string            `json:"description,omitzero"`
	Status       string            `json:"status"`                // online, busy, degraded or offline
	Why          string            `json:"why,omitzero"`          // why it is degraded or offline
	Announced    time.Time         `json:"announced_at,omitzero"` // its latest announcement since the start of the daemon
	Capabilities []CardCapability  `json:"capabilities"`
	Running      int               `json:"running"`             // runs, and tasks that may start
	Concurrency  int               `json:"max_concurrency"`     // 0: not limited
	MaxRuntime   int64             `json:"max_runtime_sec"`     // of a run; 0: not limited
	MaxTokens    *int64            `json:"max_tokens,omitzero"` // of a task, by its card
	MaxCents     *int64            `json:"max_usd_cents,omitzero"`
	Sandbox      bool              `json:"sandbox"`
	Network      string            `json:"network"`
	Groups       []string          `json:"groups,omitempty"`
	Endpoints    map[string]string `json:"endpoints,omitempty"` // of its card; mailboxd calls none
}

// A CardCapability is one thing that an agent can do.
type CardCapability struct {
	ID         string   `json:"id"`
	Version    string   `json:"version,omitzero"`
	Tags       []string `json:"tags,omitempty"`
	Tools      []string `json:"tools,omitempty"`
	Servers    []string `json:"servers,omitempty"`
	TrustLevel string   `json:"trust_level,omitzero"`
	CostHint   string   `json:"cost_hint,omitzero"`
}

// Cards are the agents of the daemon.
type Cards struct {
	Cards []Card `json:"cards"`
}

// Cards returns the agents with what they can do.
func (c *Client) Cards(ctx context.Context) ([]Card, error) {
	var answer Cards
	err := c.get(ctx, Base+"/cards", nil, &answer)
	return answer.Cards, err
}
