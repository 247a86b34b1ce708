package envelope

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// A Dialect names the words in which a message is said.
type Dialect string

// The dialects that we speak.
const (
	AINL  Dialect = "ainl"  // AgentTaskRequest and AgentTaskResult, the mailbox's own
	CLowl Dialect = "clowl" // CLowl v0.2
	CAP   Dialect = "cap"

	Clutch Dialect = "clutch" // Clutch Protocol v0
)

// An Act is what a message does, in whatever dialect it is said.
type Act string

// The acts. The comment says who says it, to whom.
const (
	Requests  Act = "task.requested"   // requester to agent: do this
	Accepts   Act = "task.accepted"    // agent to requester: will do
	Reports   Act = "task.progress"    // agent to requester: this far
	Waits     Act = "task.waiting"     // agent to requester: not going on, for a reason
	Completes Act = "task.completed"   // agent to requester: done, and this is the answer
	Fails     Act = "task.failed"      // agent to requester: will not be done, and why
	Cancels   Act = "cancel.requested" // requester to agent: stop that
	Stops     Act = "task.cancelled"   // agent to the sender of the cancellation: stopped
	Delegates Act = "task.delegated"   // agent to agent: do this for me
	Inquires  Act = "review.inquiry"   // overseer to agent: not yet, for a reason
	Informs   Act = "info"             // anybody to anybody
	Asks      Act = "status.query"     // anybody to anybody: how far is it
	Tells     Act = "status.answer"    // the answer to that
	Announces Act = "agent.registered" // agent to everybody: what it can do
	Updates   Act = "agent.updated"    // agent to everybody: what it can do now
	Beats     Act = "agent.heartbeat"  // agent to everybody: it is there
	Calls     Act = "tool.called"      // agent to us: use this tool
	Returns   Act = "tool.result"      // what the tool gave
	Breaks    Act = "tool.failed"      // why the tool gave nothing
	Routes    Act = "routing.decided"  // we to the requester: which agent was chosen
	Strands   Act = "routing.failed"   // we to the requester: no agent can do it
)

// A Tie is how a task belongs to the one above it. The zero value is AINL's: an
// agent asked for it while it worked, and goes on.
type Tie string

// The ties.
const (
	Member   Tie = "member"   // the one above is for several agents at once, and gathers what they answer (CLOWL-09)
	Transfer Tie = "transfer" // what becomes of this one becomes of the one above (CLOWL-31)
	Fork     Tie = "fork"     // they have nothing to do with each other any more (CLOWL-32)
	Assist   Tie = "assist"   // the agent of the one above waits for this one, and goes on with its answer (CLOWL-33, CAP-19)
	Oversee  Tie = "oversee"  // an overseer is to approve of what the agent of the one above answered (CAP-24)
)

// Everybody, alone in To, is every agent that can do it (CLOWL-09).
const Everybody = "*"

// Ourselves is who speaks for no agent.
const Ourselves = "mailboxd"

// A Message is something said between participants: agents, people, and us. Its
// fields are what all dialects have in common; what only its own has stays in
// Data, Extra and Raw, so that encoding it again in the same dialect loses nothing.
// Codecs make messages from lines, and we make our own. A Message that was
// decoded is never changed and may be shared.
type Message struct {
	Raw     []byte  // the exact bytes, a secret in them struck out; nil for one that was not said yet
	Hash    string  // hex sha256 of the canonical content, without what Raw is struck of
	Dialect Dialect // whose words Data and Extra are; "" for nobody's
	Act     Act

	ID     string    // what its sender calls the message; "" where messages have no names
	Task   ID        // the task that it asks for, or is about, by the name its sender knows it by; "" when Cause says it
	Cause  string    // the ID of the message that it is a reply to; "" for none
	Thread string    // which conversation it is part of; "" for none of its own
	Trace  string    // which chain of work, over many conversations; "" for none
	From   string    // who says it; nobody proves that, see Secret
	To     []string  // to whom: one, several, or Everybody alone
	Time   time.Time // zero: not said

	Secret string // what proves From; never written to anything that we keep

	Type string         // what kind of work, or of news
	Text string         // for people
	Data jsontext.Value // for machines, an object in the words of Dialect; nil for none

	Attachments   []Attachment
	Context       Context
	Deterministic bool // the answer can be had again
	WantsReply    bool // its sender goes on when it has an answer

	Tie      Tie      // of what it delegates
	Failure  Failure  // what went wrong
	Supports []string // what an agent announces that it takes: "search:web"

	// Request is what is asked for, when it Requests or Delegates: what policy,
	// agents and the ledger work with. Its Raw, Hash, ID, Requester, Agent are those
	// of the message.
	Request Task

	// Answer is what was found out, when it Completes or Fails.
	Answer Result

	Extra jsontext.Value // top-level members that the dialect does not know, an object; nil for none

	Clutch *ClutchPart // what only Clutch says; nil for a message of another dialect
	Asked  *ClutchPart // of the request that the message is about, which echoes its trace and domain; nil: none
}

// A Context is material that many messages share by reference (CLOWL-13).
type Context struct {
	Ref    string // a path or a URL; "" for none
	Hash   string // lower-case hex SHA-256 of what lies there; "" when nobody says
	Inline string // what to use when nothing lies there; "" for nothing
}

// A Failure is why something was not done, so that any dialect can say it.
type Failure struct {
	Kind    Kind
	Code    string // as its sender said it: "E003", "504"
	Message string
	Retry   bool // a message that is put right, or sent later, may succeed
}

// An Attachment is a thing handed over with a message (CAP-16). Raw is all of it.
type Attachment struct {
	Type   string         // tool_call_result, file, python_object, text_snippet
	Server string         // tool_call_result: whose tool
	Tool   string         // tool_call_result
	Path   string         // file: a path
	URL    string         // file: or a URL
	Text   string         // text_snippet
	Raw    jsontext.Value // the whole object; nil when the fields above say it all
}
