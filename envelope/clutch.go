package envelope

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A ClutchPart has the members of a message, and of the task that it requests, that only Clutch
// has.
type ClutchPart struct {
	Type   string // one of the 17 types: "task.request"
	TaskID string // task_id as its sender wrote it; Message.Task is a digest if it is no safe name
	RunID  string // the execution that the task is part of: a whole tree of tasks (CLUTCH-05)
	Parent ID     // the parent task, from parent_task_id; "" for none (CLUTCH-07)
	Role   string // the role of the sender; it decides nothing (CLUTCH-09)

	Recipients  []Recipient // without duplicates; none: the router chooses (CLUTCH-10)
	Domain      string
	PayloadType string
	SchemaRef   string         // of this payload: in a request the input's, in a result the output's (CLUTCH-14)
	Payload     jsontext.Value // any JSON, byte for byte

	Requires []string // capability ids, all of which the agent must have
	Prefers  []string

	Trace          Trace
	Auth           Signature
	SecurityPolicy SecurityPolicy
	Attachments    []ClutchAttachment

	Card           *Card // of an agent.register or agent.update; else nil
	IdempotencyKey string
	Attempt        int // 1 or more; 0 for a message that was not read (CLUTCH-21)
	MaxRuntime     time.Duration

	Workflow string         // meta.workflow
	Step     string         // meta.step
	Intent   string         // meta.intent of a chat.message: status, question, oversight or reply
	Meta     jsontext.Value // all of meta, an object; nil for none
}

// A Recipient is an agent, or one member of a group of agents.
type Recipient struct {
	Name  string
	Group bool
}

// String returns the name, with the prefix that tells a group from an agent.
func (r Recipient) String() string {
	if r.Group {
		return "group:" + r.Name
	}
	return r.Name
}

// A Trace names a step of a trace that spans several programs. Empty names were not given.
type Trace struct{ TraceID, SpanID string }

// A Signature is the signature of a message (CLUTCH-63).
type Signature struct {
	Scheme, KeyID, Value string

	Verified bool // a key of the sender verified it when the message came; no codec sets it
}

// The member of a result about the signature of its request, and its values (CLUTCH-63).
const (
	SignatureKey = "mbx.signature" // a member of the result
	Verified     = "verified"      // a key of the sender verified it
	Unverified   = "unverified"    // no key was configured for it
)

// String returns Verified or Unverified.
func (s Signature) String() string {
	if s.Verified {
		return Verified
	}
	return Unverified
}

// IsSigned reports whether the message has a signature.
func (c *ClutchPart) IsSigned() bool { return c != nil && c.Auth != Signature{} }

// Verify returns the part with its signature marked as verified.
func (c *ClutchPart) Verify() *ClutchPart {
	verified := *c
	verified.Auth.Verified = true
	return &verified
}

// MarkSignature records in a result whether the signature of its request was verified. It
// removes the agent's own member of that name.
func MarkSignature(r *Result, request Task) {
	members := map[string]jsontext.Value{}
	if r.Extra != nil && json.Unmarshal(r.Extra, &members) != nil {
		return // not an object, so Encode leaves it out
	}
	if _, said := members[SignatureKey]; !said && !request.Clutch.IsSigned() {
		return
	}
	delete(members, SignatureKey)
	if request.Clutch.IsSigned() {
		members[SignatureKey] = jsontext.Value(`"` + request.Clutch.Auth.String() + `"`)
	}
	r.Extra, _ = json.Marshal(members, json.Deterministic(true), jsontext.AllowInvalidUTF8(true)) // members that were decoded can be encoded
}

// A SecurityPolicy has the limits that a message sets on the agent. The zero value sets none.
type SecurityPolicy struct {
	Sandbox       *bool    // nil: the message says nothing
	ToolAllowlist []string // nil: not given; empty: no tools
	Network       Network  // "" : not given
}

// A ClutchAttachment is an attachment of a Clutch message (CLUTCH-19).
type ClutchAttachment struct {
	Kind     string         // artifact_ref, inline, url
	Ref      string         // artifact_ref: "artifact:report_456"
	URL      string         // url; it is never fetched
	Content  jsontext.Value // inline: any JSON
	MIMEType string         // "" for none
}

// Routed reports whether the router has to choose the agent: the message has no recipient, or
// the router itself, or one group.
func (c *ClutchPart) Routed() bool {
	if c == nil || len(c.Recipients) > 1 {
		return false
	}
	return len(c.Recipients) == 0 || c.Recipients[0].Group || c.Recipients[0].Name == "router" || c.Recipients[0].Name == "orchestrator"
}

// Wants reports whether the sender of a request asks for optional messages with a prefix, such
// as "routing": meta.wants lists them.
func (c *ClutchPart) Wants(prefix string) bool {
	if c == nil || c.Meta == nil {
		return false
	}
	var meta struct {
		Wants []string `json:"wants"`
	}
	return json.Unmarshal(c.Meta, &meta) == nil && slices.Contains(meta.Wants, prefix)
}

// NeedsFit reports whether the message requires more of its agent than the policy checks.
func (c *ClutchPart) NeedsFit() bool {
	if c == nil {
		return false
	}
	p := c.SecurityPolicy
	return len(c.Requires) > 0 || p.Sandbox != nil && *p.Sandbox || p.Network != ""
}
