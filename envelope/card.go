package envelope

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Card is an AgentCard of Clutch: what an agent advertises (CLUTCH-24). It never says how to
// start or reach the agent: its endpoints inform people only (CLUTCH-87). A decoded Card does
// not change and may be shared.
type Card struct {
	AgentID     string // without "agent:"
	Name        string // display.name
	Description string // display.desc

	Endpoints    map[string]string // url by name; never dialled
	Capabilities []Capability
	Limits       CardLimits

	Sandbox bool    // security.sandbox: the agent runs isolated
	Network Network // security.network; "" when not given
}

// A Capability is one thing that an agent can do (CLUTCH-25).
type Capability struct {
	ID         string     `json:"id"`                 // "skill:research"
	Version    string     `json:"version,omitzero"`   // semantic; "" when not given
	Tags       []string   `json:"tags,omitempty"`     // domains
	Tools      []string   `json:"tools,omitempty"`    // tools that it needs
	Servers    []string   `json:"servers,omitempty"`  // MCP servers that it offers
	Inputs     []string   `json:"inputs,omitempty"`   // payload types
	Outputs    []string   `json:"outputs,omitempty"`  // payload types
	TrustLevel TrustLevel `json:"trust,omitzero"`     // "" means sandbox
	CostHint   string     `json:"cost_hint,omitzero"` // low, medium, high
}

// CardLimits are the limits that a card sets on its agent (CLUTCH-26, CLUTCH-27). Zero or nil
// means no limit.
type CardLimits struct {
	Concurrency int
	Runtime     time.Duration
	Budget      Budget // of one task: max_tokens, and max_cost in cents
}

// A TrustLevel says for which work a capability is trusted (CLUTCH-79).
type TrustLevel string

// The trust levels.
const (
	TrustSandbox TrustLevel = "sandbox"
	TrustProd    TrustLevel = "prod"
)

// A Network is the network access that an agent may have.
type Network string

// The networks, from the narrowest to the widest.
const (
	NetworkNone       Network = "none"
	NetworkRestricted Network = "egress-restricted"
	NetworkAllowed    Network = "egress-allowed"
)

// Networks lists every Network, from the narrowest to the widest.
func Networks() []Network { return []Network{NetworkNone, NetworkRestricted, NetworkAllowed} }

// cardFields are the fields of a card, by the name of their object; "" is the card itself.
var cardFields = map[string][]string{
	"":             {"v", "agent_id", "display", "endpoints", "capabilities", "limits", "security"},
	"capabilities": {"id", "version", "tags", "tools", "servers", "inputs", "outputs", "trust_level", "cost_hint"},
	"limits":       {"max_concurrency", "max_runtime_sec", "max_tokens", "max_cost"},
	"security":     {"sandbox", "network"},
}

// cardVersion is the version of Clutch whose cards we read.
const cardVersion = "clutch/0.1"

// DecodeCard reads an AgentCard. A wrong value of a limit refuses the card. An unknown field
// gives a warning: a misspelt limit limits nothing.
func DecodeCard(raw []byte) (Card, Findings) {
	c := check{document: documents.Get().(*document)}
	defer c.release()
	if !c.publishable(raw) {
		return Card{}, c.findings
	}
	if at := c.required(0, "v"); at != none && c.name(at) != cardVersion {
		c.note(UnsupportedVersion, "v", fmt.Sprintf("is not %q", cardVersion))
	}
	card := Card{Capabilities: c.capabilities(c.required(0, "capabilities"))}
	if at := c.required(0, "agent_id"); at != none {
		card.AgentID = c.agentID(at)
	}
	if display := c.member(0, "display"); c.is(display, '{') {
		card.Name, card.Description = c.prose(c.member(display, "name")), c.prose(c.member(display, "desc"))
	}
	card.Endpoints = c.endpoints(c.member(0, "endpoints"))
	card.Limits = c.cardLimits(c.member(0, "limits"))
	if security := c.member(0, "security"); c.is(security, '{') {
		c.unknown(security, "security")
		card.Sandbox = c.flag(c.member(security, "sandbox"))
		card.Network = oneOf(&c, c.member(security, "network"), Networks()...)
	}
	c.unknown(0, "")
	return card, c.findings
}

// agentID reads "agent:ken".
func (c *check) agentID(at int) string {
	id, ok := strings.CutPrefix(c.name(at), "agent:")
	if !ok || id == "" {
		c.refuse(at, `must be "agent:" and the id of the agent`)
		return ""
	}
	return id
}

func (c *check) endpoints(at int) map[string]string {
	if !c.is(at, '{') {
		return nil
	}
	urls := map[string]string{}
	for name, value := range c.members(at) {
		if c.is(value, '{') {
			key, _ := c.text(name)
			urls[key] = c.name(c.required(value, "url"))
		}
	}
	return urls
}

func (c *check) capabilities(at int) (all []Capability) {
	if !c.is(at, '[') {
		return nil
	}
	for _, item := range c.items(at) {
		if !c.is(item, '{') {
			continue
		}
		c.unknown(item, "capabilities")
		all = append(all, Capability{
			ID:         c.name(c.required(item, "id")),
			Version:    c.name(c.member(item, "version")),
			Tags:       c.names(c.member(item, "tags")),
			Tools:      c.names(c.member(item, "tools")),
			Servers:    c.names(c.member(item, "servers")),
			Inputs:     c.names(c.member(item, "inputs")),
			Outputs:    c.names(c.member(item, "outputs")),
			TrustLevel: oneOf(c, c.member(item, "trust_level"), TrustSandbox, TrustProd),
			CostHint:   oneOf(c, c.member(item, "cost_hint"), "low", "medium", "high"),
		})
	}
	return all
}

func (c *check) cardLimits(at int) (l CardLimits) {
	if !c.is(at, '{') {
		return l
	}
	c.unknown(at, "limits")
	l.Concurrency = int(min(c.positive(c.member(at, "max_concurrency")), 1<<20))
	l.Runtime = time.Duration(min(c.positive(c.member(at, "max_runtime_sec")), 1<<32)) * time.Second
	l.Budget.Tokens = c.amount(c.member(at, "max_tokens"))
	if cost := c.member(at, "max_cost"); cost != none {
		l.Budget.USDCents = c.cents(cost)
	}
	return l
}

// positive reads a whole number above 0; absent is 0.
func (c *check) positive(at int) int64 {
	n := c.amount(at)
	if n != nil && *n == 0 {
		c.refuse(at, "must be more than 0")
	}
	if n == nil {
		return 0
	}
	return *n
}

// cents reads an amount of dollars from its digits. A part of a cent is left out: the limit
// is never wider than the card says.
func (c *check) cents(at int) *int64 {
	whole, part, _ := strings.Cut(string(c.value(at)), ".")
	digits := (part + "00")[:2]
	n, err := strconv.ParseInt(whole+digits, 10, 63)
	if c.kind(at) != '0' || strings.ContainsAny(part, "eE") || err != nil || n < 0 {
		c.refuse(at, "must be an amount of dollars such as 1.25")
		return nil
	}
	return &n
}

// unknown warns about members that an object of a card doesn't have.
func (c *check) unknown(object int, name string) {
	for key := range c.members(object) {
		if !slices.ContainsFunc(cardFields[name], func(known string) bool { return c.says(key, known) }) {
			c.warn(key, "is not a field we know")
		}
	}
}
