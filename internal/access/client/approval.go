package client

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/sandbox"
)

// An Approval is what a person was asked about a task, and what came of it.
type Approval struct {
	Revision int               `json:"revision"`           // which one it is about
	Stage    envelope.Approval `json:"stage"`              // pre: its start; post: showing its answer; tool: a call of a tool
	Digest   string            `json:"digest"`             // names what exactly it is about
	Plan     *Plan             `json:"plan,omitempty"`     // and says it, for a start
	Call     *task.Call        `json:"call,omitempty"`     // and says it, for a call of a tool
	Approver string            `json:"approver,omitempty"` // the only approver; absent: any approver
	Asked    time.Time         `json:"asked_at"`
	Expires  time.Time         `json:"expires_at,omitzero"` // absent: it stands for ever
	Decision string            `json:"decision,omitempty"`  // approved, denied, expired or void; absent while it is open
	Decided  time.Time         `json:"decided_at,omitzero"`
	Decider  string            `json:"decided_by,omitempty"`
	Note     string            `json:"note,omitempty"`
	Proof    *Proof            `json:"proof,omitempty"` // of the decision; absent: none
	Own      string            `json:"own,omitempty"`   // approval.self, if the caller requested the task: refuse, confirm or allow

	Request jsontext.Value `json:"request,omitempty"` // as it came; absent if it is that of the latest revision, or isn't kept
}

// DeniesTask reports whether a person denied the start or the answer of the task, and not only one of
// its calls.
func (a Approval) DeniesTask() bool {
	return task.Decision(a.Decision) == task.Denied && a.Stage != envelope.ApprovalTool
}

// A Proof is the evidence for a decision.
type Proof struct {
	Kind      string    `json:"kind"`                // terminal, ssh or passkey
	Terminal  string    `json:"terminal,omitempty"`  // where the number was typed
	Key       string    `json:"key,omitempty"`       // fingerprint of the key that signed
	Expires   time.Time `json:"expires_at,omitzero"` // of the signature
	Signed    string    `json:"signed,omitempty"`    // the text that was signed
	Signature string    `json:"signature,omitempty"` // of ssh: ssh-keygen -Y verify -n approval@mailboxd accepts it; of a passkey: JSON of WebAuthn
}

// PlanFormat is the format of the plans that this version makes. Plans of earlier versions have
// none, and say nothing of the content of programs.
const PlanFormat = 2

// A Plan is what a person agrees to before a run: this request, to be done by
// this command with these limits. What changes from one attempt to the next is
// not part of it.
type Plan struct {
	Format     int             `json:"format,omitzero"`      // absent: an earlier one, which covers no content of programs
	Request    string          `json:"request"`              // the envelope's hash
	Command    []string        `json:"command"`              // as it is configured, its templates not filled in
	Executable string          `json:"executable"`           // the file that its first word means; "" when there is none
	Cwd        string          `json:"cwd"`                  // "" for a directory of the run's own
	Worktree   bool            `json:"worktree,omitzero"`    // it works in a clone of the repository at Cwd
	Base       string          `json:"base,omitempty"`       // the branch, tag or commit that the clone begins with; "" for HEAD
	Copy       []string        `json:"copy,omitempty"`       // files and directories of the working tree that the clone gets
	Setup      []string        `json:"setup,omitempty"`      // the command that prepares the clone, before the other one
	Continues  envelope.ID     `json:"continues,omitempty"`  // the task whose session it continues
	RoundOf    envelope.ID     `json:"round_of,omitempty"`   // the denied task that it does once more, in its worktree
	Inbox      string          `json:"inbox,omitempty"`      // where somebody fetches it, instead of a command
	Service    *task.Service   `json:"service,omitzero"`     // which is asked to do it, instead of a command
	Remote     bool            `json:"remote,omitzero"`      // runners on other machines run it, instead of a command
	Bindings   []string        `json:"bindings,omitempty"`   // digests of what these runners run
	Permission string          `json:"permission,omitempty"` // of the agent's program, by its profile; "" for what its own settings allow
	Tools      []string        `json:"tools"`                // null: not restricted
	Calls      *task.CallRules `json:"calls,omitzero"`       // which calls of tools are allowed; nil: it doesn't ask about them
	Budget     envelope.Budget `json:"budget"`

	Sandbox sandbox.Settings `json:"sandbox,omitzero"` // what the run may touch

	// SHA-256 of the program and of the scripts of the command by path, unless their paths count;
	// HMAC of the values of exec.env by name, "" for one that isn't set; SHA-256 of the manifest.
	Files    map[string]string `json:"files,omitempty"`    // contents of the program and of the scripts of the command, by path
	Env      map[string]string `json:"env,omitempty"`      // keyed digests of the values of exec.env, by name
	Manifest string            `json:"manifest,omitempty"` // SHA-256 of the agent's manifest

	// The digest doesn't cover versions. There are some if the paths of programs count.
	Versions map[string]string `json:"versions,omitempty"` // of the program and the scripts when it was asked

	// SHA-256 of the descriptions and schemas of its tools of MCP servers that were used before, by server/tool. The
	// digest doesn't cover them: a person is asked about a changed one by itself.
	Definitions map[string]string `json:"definitions,omitempty"`
}

// Digest identifies what a plan covers: the SHA-256 of its encoding without versions and definitions, in
// hexadecimal.
func (p Plan) Digest() string {
	p.Versions, p.Definitions = nil, nil
	sum := sha256.Sum256(p.Encode())
	return hex.EncodeToString(sum[:])
}

// Encode returns the plan as JSON, the same bytes for the same plan. It never
// fails: a plan is text and numbers, and a path may be any bytes.
func (p Plan) Encode() jsontext.Value {
	type bare Plan
	text, err := json.Marshal(bare(p), json.FormatNilSliceAsNull(true), json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("encode plan: " + err.Error())
	}
	return text
}

// MarshalJSON is Encode, so that no list is a list of nothing wherever a plan
// is shown: tools that nobody spoke of are not tools that nobody allows.
func (p Plan) MarshalJSON() ([]byte, error) { return p.Encode(), nil }
