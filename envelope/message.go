package envelope

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A Dialect is the language of a message.
type Dialect string

// The dialects that mailboxd reads and writes.
const (
	AINL  Dialect = "ainl"  // AgentTaskRequest and AgentTaskResult, the mailbox's own
	CLowl Dialect = "clowl" // CLowl v0.2
	CAP   Dialect = "cap"

	Clutch Dialect = "clutch" // Clutch Protocol v0
)

// An Act is what a message does, in any dialect.
type Act string

// The acts. The comment names sender and recipient.
const (
	Requests       Act = "task.requested"   // requester to agent: do this task
	Accepts        Act = "task.accepted"    // agent to requester: the task will be done
	Reports        Act = "task.progress"    // agent to requester: how far the task is
	Waits          Act = "task.waiting"     // agent to requester: the task waits, and why
	Completes      Act = "task.completed"   // agent to requester: the task is done, with the answer
	Fails          Act = "task.failed"      // agent to requester: the task will not be done, and why
	Cancels        Act = "cancel.requested" // requester to agent: stop that task
	Stops          Act = "task.cancelled"   // agent to the sender of the cancellation: the task is stopped
	Delegates      Act = "task.delegated"   // agent to agent: do this task for me
	Inquires       Act = "review.inquiry"   // overseer to agent: not approved yet, and why
	Informs        Act = "info"             // any participant to any other
	Asks           Act = "status.query"     // any participant to any other: how far is the task
	ReportsStatus  Act = "status.answer"    // the answer to status.query
	Announces      Act = "agent.registered" // agent to all: its capabilities
	Updates        Act = "agent.updated"    // agent to all: its changed capabilities
	SendsHeartbeat Act = "agent.heartbeat"  // agent to all: it is alive
	Calls          Act = "tool.call"        // agent to mailboxd: use this tool
	Returns        Act = "tool.result"      // the result of the tool
	FailsTool      Act = "tool.failed"      // why the tool gave no result
	Routes         Act = "routing.decided"  // mailboxd to the requester: the chosen agent
	FailsToRoute   Act = "routing.failed"   // mailboxd to the requester: no agent can do the task
)

// A Tie is the relation of a task to its parent. The zero value is AINL's: the agent of the
// parent asked for it and keeps running.
type Tie string

// The ties.
const (
	Member   Tie = "member"   // the parent is for several agents at once, and gathers their answers (CLOWL-09)
	Transfer Tie = "transfer" // the outcome of this task is the outcome of the parent (CLOWL-31)
	Fork     Tie = "fork"     // both are independent (CLOWL-32)
	Assist   Tie = "assist"   // the agent of the parent waits for the answer of this task, and goes on with it (CLOWL-33, CAP-19)
	Oversee  Tie = "oversee"  // an overseer reviews the answer of the parent (CAP-24)
)

// Everybody, alone in To, means every agent that can do the task (CLOWL-09).
const Everybody = "*"

// Mailboxd is the sender of mailboxd's own messages.
const Mailboxd = "mailboxd"

// MCP is the sender of what tools of MCP servers return.
const MCP = "mcp"

// ToolUnavailable is Clutch's code for a tool that can't be used.
const ToolUnavailable = "TOOL_UNAVAILABLE"

// A Message is a message between participants: agents, people, and mailboxd. Its fields are
// common to all dialects. The members that only one dialect has stay in Data, Extra and Raw, so
// that encoding the message again in the same dialect loses nothing. Codecs decode messages
// from lines; mailboxd also makes its own. A decoded Message does not change and may be shared.
type Message struct {
	Raw     []byte  // the exact bytes, with any secret redacted; nil for a message that was not sent yet
	Hash    string  // hex SHA-256 of the canonical content, without the members that Raw has redacted
	Dialect Dialect // the dialect of Data and Extra; "" for none
	Act     Act

	ID     string    // the sender's name for the message; "" in a dialect without such names
	Task   ID        // the task that it requests or is about, by the name that its sender uses; "" when Cause names the message instead
	Cause  string    // the ID of the message that it replies to; "" for none
	Thread string    // its conversation; "" for none of its own
	Trace  string    // its chain of work, over many conversations; "" for none
	From   string    // the claimed sender; see Secret
	To     []string  // the recipients: one, several, or Everybody alone
	Time   time.Time // zero: not given

	Secret string // the proof of From; never written to a file

	Type string         // the type of the work or of the information
	Text string         // for people
	Data jsontext.Value // for machines, an object in the form of Dialect; nil for none

	Attachments   []Attachment
	Context       Context
	Deterministic bool // the same request gives the same answer again
	WantsReply    bool // its sender waits for an answer

	Tie      Tie      // the tie of the task that it delegates
	Failure  Failure  // the error
	Supports []string // the types of work that an agent announces, such as "search:web"

	// Request is the requested task, if the message Requests or Delegates. Its Raw, Hash, ID,
	// Requester and Agent are those of the message.
	Request Task

	// Answer is the result, if the message Completes or Fails.
	Answer Result

	Extra jsontext.Value // top-level members that the dialect does not define, an object; nil for none

	Returned *ToolReturn // what the tool returned that the message calls, once mailboxd has called it; nil: it has not. No codec sets it

	Clutch *ClutchPart // the members that only Clutch has; nil for a message of another dialect
	Asked  *ClutchPart // those of the request that the message is about: the message repeats its trace and domain; nil for none
}

// A ToolReturn is what came of a call of a tool of an MCP server.
type ToolReturn struct {
	Result  jsontext.Value // a CallToolResult, an object; nil: there is none
	Failure Failure        // why not
}

// A Context is material that many messages share by reference (CLOWL-13).
type Context struct {
	Ref    string // a path or a URL; "" for none
	Hash   string // lower-case hex SHA-256 of the content at Ref; "" if not given
	Inline string // the content to use if nothing is at Ref; "" for none
}

// A Failure is the reason why a task was not done. Any dialect can express it.
type Failure struct {
	Kind    Kind
	Code    string // the sender's code: "E003", "504"
	Message string
	Retry   bool // a corrected or later message may succeed
}

// An Attachment is an attachment of a message (CAP-16). Raw is all of it.
type Attachment struct {
	Type   string         // tool_call_result, file, python_object, text_snippet
	Server string         // tool_call_result: whose tool
	Tool   string         // tool_call_result
	Path   string         // file: a path
	URL    string         // file: or a URL
	Text   string         // text_snippet
	Raw    jsontext.Value // the whole object; nil if the fields above have all of it
}
