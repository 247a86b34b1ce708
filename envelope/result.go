package envelope

import (
	"math"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// SchemaVersion is the version that mailboxd writes. It reads any 1.x.
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
	Extra      jsontext.Value // unknown fields, an object, written as they are; nil for none
}

// An Output has the findings and actions of the agent.
type Output struct {
	Summary     string
	Actions     []Action
	Enforcement Levels         // the Level of each control; only mailboxd sets it; nil for none
	Extra       jsontext.Value // further fields of the agent's own, an object; nil for none
}

// NoSummary is the summary in the result of an agent that gave none (AINL-65). Messages never
// show it as the words of the agent.
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
	Unpriced bool // the cents are unknown, and 0 stands for them
}

// Most returns the larger of both costs, number by number. The cents are known if one of both
// knows them.
func (c Cost) Most(d Cost) Cost {
	return Cost{Tokens: max(c.Tokens, d.Tokens), USDCents: max(c.USDCents, d.USDCents), Unpriced: c.Unpriced && d.Unpriced}
}

// Plus returns the sum of both costs, at most the largest number. The cents are known if those of c are.
func (c Cost) Plus(d Cost) Cost {
	sum := func(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }
	return Cost{Tokens: sum(c.Tokens, d.Tokens), USDCents: sum(c.USDCents, d.USDCents), Unpriced: c.Unpriced}
}

// A TimeUsed has the start and the end of the run, by mailboxd's clock. A zero time is written
// as the time at which the result was made.
type TimeUsed struct {
	Started  time.Time
	Finished time.Time
	Wall     time.Duration
}

// A Review tells whether a person must look, and why (AINL-70). The zero value requests
// nothing.
type Review struct {
	Required bool
	Reason   string
}

// Ask adds a reason why a person must look. It never removes the agent's own request for
// review.
func (r *Review) Ask(reason string) {
	r.Required = true
	r.Note(reason)
}

// Note adds a text for people who look, without a request to look.
func (r *Review) Note(reason string) {
	switch {
	case r.Reason == "":
		r.Reason = reason
	case !strings.Contains(r.Reason, reason):
		r.Reason += "; " + reason
	}
}

// An Error is the reason of a failure (AINL-71). Its zero value means no failure.
type Error struct {
	Kind    Kind
	Message string
	Code    string // the agent's own code in CLowl or CAP, if the code of Kind is another one: "E901", "408"; "" for none
	Final   bool   // the agent says that a retry cannot succeed, although Kind allows one
	Again   bool   // the agent says that a retry may succeed, although Kind allows none
}

// A Provenance links a result to the program and run it came from (AINL-72).
// Empty fields are written as empty strings.
type Provenance struct {
	GraphChecksum  string // ainl_graph_checksum
	ProgramID      string // ainl_program_id
	RuntimeVersion string // runtime_version
	RecordingURI   string // recording_uri
}
