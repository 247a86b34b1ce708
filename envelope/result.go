package envelope

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// SchemaVersion is the version we write. Any 1.x is read.
const SchemaVersion = "1.0"

// A Result is an AgentTaskResult: the one final answer to a task. Encode
// makes the bytes of results/<task_id>.json from it.
type Result struct {
	TaskID     ID
	AgentID    string
	Status     Status
	Confidence *float64 // 0 to 1; nil is null (AINL-64)
	Output     Output
	Artifacts  []Ref // artifact_refs
	Cost       *Cost // cost_used; nil is unknown, written as 0 (AINL-68)
	Time       TimeUsed
	Review     Review
	Error      Error
	Provenance Provenance
	Extra      jsontext.Value // fields we do not know, an object handed through; nil for none
}

// An Output is what was found out and done.
type Output struct {
	Summary     string
	Actions     []Action
	Enforcement Levels         // who held which control; only mailboxd says it, nil when it does not
	Extra       jsontext.Value // further fields of the agent's own, an object; nil for none
}

// NoSummary is the summary in the result of an agent that gave none (AINL-65). It is
// ours: nobody is told it as the words of the agent.
const NoSummary = "The agent gave no summary."

// An Action is one step an agent took or proposes (AINL-66).
type Action struct {
	Kind        string
	Description string
	Status      string         // pending, executed or skipped; others are kept, with review
	Extra       jsontext.Value // an object; nil for none
}

// A Cost is what a task used, in whole tokens and whole US cents.
type Cost struct {
	Tokens   int64
	USDCents int64
	Unpriced bool // nobody knows the cents, and 0 stands for them
}

// Most is the larger of both, number by number; cents that one of them knows
// are known.
func (c Cost) Most(d Cost) Cost {
	return Cost{Tokens: max(c.Tokens, d.Tokens), USDCents: max(c.USDCents, d.USDCents), Unpriced: c.Unpriced && d.Unpriced}
}

// A TimeUsed says when an agent ran, by our clock. Zero times are written as
// the time the result was made.
type TimeUsed struct {
	Started  time.Time
	Finished time.Time
	Wall     time.Duration
}

// A Review says whether a person should look, and why (AINL-70). The zero
// value asks for nothing.
type Review struct {
	Required bool
	Reason   string
}

// Ask adds a reason why a person has to look; an agent's own wish is never
// lowered.
func (r *Review) Ask(reason string) {
	r.Required = true
	r.Note(reason)
}

// Note adds something to say to anyone who looks, but does not ask anybody to.
func (r *Review) Note(reason string) {
	switch {
	case r.Reason == "":
		r.Reason = reason
	case !strings.Contains(r.Reason, reason):
		r.Reason += "; " + reason
	}
}

// An Error says what went wrong; its zero value is "nothing" (AINL-71).
type Error struct {
	Kind    Kind
	Message string
	Code    string // what its agent called it in CLowl or CAP, where Kind has another code: "E901", "408"; "" for nothing
	Final   bool   // its agent says that another attempt is in vain, although Kind allows one
	Again   bool   // its agent says that another attempt may succeed, although Kind allows none
}

// A Provenance links a result to the program and run it came from (AINL-72).
// Empty fields are written as empty strings.
type Provenance struct {
	GraphChecksum  string // ainl_graph_checksum
	ProgramID      string // ainl_program_id
	RuntimeVersion string // runtime_version
	RecordingURI   string // recording_uri
}
