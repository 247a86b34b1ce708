package envelope

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Task is an AgentTaskRequest: the work, its requester, its agent and its limits. Only
// ReadLine and DecodeTask make one; the zero value is no task. A decoded Task does not change
// and may be shared.
type Task struct {
	Raw  []byte // the object's exact bytes, as the agent gets them
	Hash string // hex SHA-256 of the canonical content (AINL-55): it names the revision

	ID          ID     // task_id
	Requester   string // requester_id; nothing upstream authenticates it
	Agent       string // target_agent, compared byte for byte; Everybody for an empty one (AINL-33)
	Role        string // target_role; "" only when the request was read as Legacy
	Type        string // task_type, free-form
	Description string // may be empty

	Input   jsontext.Value // input, byte for byte; nil when it could not be read
	Refs    []Ref          // input.refs
	Payload jsontext.Value // input.payload, byte for byte; nil when absent

	Contract      *OutputContract           // required_output_contract; nil when absent
	SensitiveBy   string                    // the field that raised Sensitivity; "": the request itself, or a task above
	Sensitivity   Sensitivity               // missing is Internal, unknown is Restricted (AINL-44)
	Deadline      time.Time                 // zero: none (AINL-45)
	Budget        Budget                    // budget_limit (AINL-46)
	AllowedTools  []string                  // nil: not given; empty: none at all (AINL-47)
	Approval      Approval                  // approval_required (AINL-48)
	HumanApprover string                    // the only person who may approve; "" for any (AINL-49)
	Callback      Callback                  // further places for the result line
	Environment   string                    // policy_context.environment (AINL-52)
	ChangeWindows []Window                  // policy_context.change_window (AINL-58); nil: any time
	Metadata      map[string]jsontext.Value // opaque (AINL-53)
	Clutch        *ClutchPart               // the members that only Clutch has; nil for a request in another dialect
	NearMisses    Findings                  // refusals of what is probably a misspelt control; the control near_misses decides
	Routed        bool                      // the request leaves the choice of its agent to mailboxd; Agent is the chosen one, or Everybody
}

// A Ref points at material for, or from, a task. Its kind is an open set.
type Ref struct {
	Kind string `json:"kind"`
	URI  string `json:"uri"`
}

// An OutputContract is the required form of the answer (AINL-41..43).
type OutputContract struct {
	Format      string   // "json" or ""
	SchemaRef   string   // the schema of the output; "" for none
	MustInclude []string // names that must be present at top level or in output
}

// A Callback names further places for the result, as one appended line.
type Callback struct {
	Queue      string // queues/<name>.jsonl, [A-Za-z0-9._-]{1,64} (AINL-50)
	FileAppend string // slash-separated path below the root (AINL-51)
}

// An Approval tells when a person must approve (AINL-48). The zero value is ApprovalNone.
type Approval string

// The approvals.
const (
	ApprovalNone Approval = ""     // never
	ApprovalPre  Approval = "pre"  // before an agent is started
	ApprovalPost Approval = "post" // before the result is shown
	ApprovalBoth Approval = "both"
	ApprovalTool Approval = "tool" // before a call of a tool; the agent's rules want it, and no request can
)

// Named returns the text of a metadata key; "" if there is none, or the value is no text.
func (t Task) Named(key string) string {
	value, ok := t.Metadata[key]
	if !ok || value.Kind() != '"' {
		return ""
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return ""
	}
	return text
}

// WithoutRef returns the task without the reference to its context. Its message has an inline
// context in its place.
func (t Task) WithoutRef(uri string) Task {
	t.Refs = slices.DeleteFunc(slices.Clone(t.Refs), func(r Ref) bool { return r.URI == uri || r.URI == "file://"+uri })
	return t
}
