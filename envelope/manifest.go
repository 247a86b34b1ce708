package envelope

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// A Manifest is an AgentManifest: the permissions of an agent. It never says how to start the
// agent; no file of the mailbox can (AINL-24). A decoded Manifest does not change and may be
// shared.
type Manifest struct {
	AgentID     string // agent_id, compared byte for byte with target_agent (AINL-11)
	Name        string // name, version and description inform people only (AINL-12)
	Version     string
	Description string

	RoleTypes      []string // role_types the agent has; empty: every role (AINL-13)
	AvailableTools []string // nil: not given; else the only tools that it may ever use (AINL-14)

	ExecutionMode   ExecutionMode
	TrustDomain     string          // "" when not given (AINL-60)
	ApprovalDefault bool            // requires_human_approval.default (AINL-17)
	ApprovalByType  map[string]bool // requires_human_approval.for_task_types
	BudgetClass     string          // the name of a table in the configuration of mailboxd (AINL-18)
	Locality        Locality
	MaxContextSize  int64    // in tokens (AINL-20); 0: not given
	Contact         Contact  // for agents that pull their tasks
	PolicyRefs      []string // opaque URIs (AINL-22)
	Origin          Origin   // provenance (AINL-23)

	Extra      jsontext.Value // unknown fields, an object; nil for none
	NearMisses Findings       // refusals of what is probably a misspelt control; the control near_misses decides

	SHA256 string `json:"-"` // hex SHA-256 of its bytes; approvals cover it
}

// An ExecutionMode tells whether an agent may execute actions (AINL-15). The zero value is "not
// given".
type ExecutionMode string

// The execution modes.
const (
	Advisory  ExecutionMode = "advisory" // it must not report executed actions
	Executing ExecutionMode = "executing"
	Hybrid    ExecutionMode = "hybrid"
)

// A Locality is where the model of an agent runs (AINL-19). The zero value is "not given".
type Locality string

// The localities.
const (
	Local  Locality = "local"
	Remote Locality = "remote"
)

// A Contact is the place where an agent that pulls tasks reads them (AINL-21).
type Contact struct {
	Queue     string
	InboxFile string // slash-separated path below the root
}

// An Origin is the provenance of an agent. It informs people only.
type Origin struct {
	Owner      string
	CreatedAt  string // as written; nothing depends on it
	SourceRepo string
}

// RequiresApproval reports whether a person must approve a task of the type before the agent
// takes it: the entry of the type, else the default (AINL-17).
func (m Manifest) RequiresApproval(taskType string) bool {
	if required, ok := m.ApprovalByType[taskType]; ok {
		return required
	}
	return m.ApprovalDefault
}

// DecodeManifest reads an AgentManifest. Only schema_version and agent_id are required (AINL-10
// to AINL-23). A wrong value of another field refuses the manifest, because each field is a
// limit.
func DecodeManifest(raw []byte) (Manifest, Findings) {
	c := check{document: documents.Get().(*document)}
	defer c.release()
	if !c.publishable(raw) {
		return Manifest{}, c.findings
	}
	if version := c.required(0, "schema_version"); version != none {
		c.version(version)
	}
	m := Manifest{
		AgentID:        c.name(c.required(0, "agent_id")),
		Name:           c.prose(c.member(0, "name")),
		Version:        c.prose(c.member(0, "version")),
		Description:    c.prose(c.member(0, "description")),
		RoleTypes:      c.names(c.member(0, "role_types")),
		AvailableTools: c.tools(c.member(0, "available_tools")),
		ExecutionMode:  oneOf(&c, c.member(0, "execution_mode"), Advisory, Executing, Hybrid),
		TrustDomain:    c.name(c.member(0, "trust_domain")),
		BudgetClass:    c.name(c.member(0, "budget_class")),
		Locality:       oneOf(&c, c.member(0, "locality"), Local, Remote),
		PolicyRefs:     c.names(c.member(0, "policy_refs")),
		Extra:          c.others(0, manifestFields...),
	}
	if len(m.RoleTypes) == 0 {
		c.note("", "role_types", "is empty: the agent takes every role")
	}
	m.ApprovalDefault, m.ApprovalByType = c.standingApproval(c.member(0, "requires_human_approval"))
	if size := c.amount(c.member(0, "max_context_size")); size != nil {
		m.MaxContextSize = *size
	}
	m.Contact = c.contact(c.member(0, "contact"))
	m.Origin = c.origin(c.member(0, "provenance"))
	c.warnUnknown()
	m.NearMisses = c.nearMisses(0, InManifest)
	sum := sha256.Sum256(raw)
	m.SHA256 = hex.EncodeToString(sum[:])
	return m, c.findings
}

var manifestFields = []string{
	"schema_version", "agent_id", "name", "version", "description", "role_types", "available_tools",
	"execution_mode", "trust_domain", "requires_human_approval", "budget_class", "locality",
	"max_context_size", "contact", "policy_refs", "provenance",
}

// oneOf returns a string that must be one of a few.
func oneOf[S ~string](c *check, at int, choices ...S) S {
	word := S(c.name(at))
	if word != "" && !slices.Contains(choices, word) {
		c.refuse(at, fmt.Sprintf("must be one of %q", choices))
		return ""
	}
	return word
}

// standingApproval reads requires_human_approval (AINL-17).
func (c *check) standingApproval(at int) (byDefault bool, byType map[string]bool) {
	if !c.is(at, '{') {
		return false, nil
	}
	byDefault = c.flag(c.member(at, "default"))
	types := c.member(at, "for_task_types")
	if !c.is(types, '{') {
		return byDefault, nil
	}
	byType = make(map[string]bool)
	for name, value := range c.members(types) {
		key, _ := c.text(name)
		byType[key] = c.flag(value)
	}
	return byDefault, byType
}

// flag reads true or false; absent is false.
func (c *check) flag(at int) bool {
	if at != none && c.kind(at) != 't' && c.kind(at) != 'f' {
		c.refuse(at, "must be true or false")
	}
	return at != none && c.kind(at) == 't'
}

func (c *check) contact(at int) Contact {
	if !c.is(at, '{') {
		return Contact{}
	}
	contact := Contact{Queue: c.name(c.member(at, "queue"))}
	if file := c.member(at, "inbox_file"); file != none {
		contact.InboxFile = c.file(file)
	}
	return contact
}

func (c *check) origin(at int) Origin {
	if !c.is(at, '{') {
		return Origin{}
	}
	return Origin{
		Owner:      c.prose(c.member(at, "owner")),
		CreatedAt:  c.prose(c.member(at, "created_at")),
		SourceRepo: c.prose(c.member(at, "source_repo")),
	}
}

// warnUnknown warns about unknown fields: a misspelt limit limits nothing.
func (c *check) warnUnknown() {
	for name := range c.members(0) {
		if !slices.ContainsFunc(manifestFields, func(known string) bool { return c.says(name, known) }) {
			c.warn(name, "is not a field we know")
		}
	}
}
