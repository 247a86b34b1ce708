package task

import (
	"time"

	"mailboxd/envelope"
)

// A Via is how a message reached the daemon. It decides how far its sender's name
// can be trusted.
type Via string

// The ways.
const (
	ByLine   Via = "line"   // in a task file, to which any program may append
	ByRun    Via = "run"    // an agent's run printed it
	BySocket Via = "socket" // over the control socket
	ByDaemon Via = "daemon" // the daemon wrote it
)

// A Message is a message as it is remembered.
type Message struct {
	Seq       int64 // the order in which messages were remembered; the ledger gives it
	Time      time.Time
	Dialect   envelope.Dialect
	Act       envelope.Act
	ID        string // the sender's name for it; "" where messages have no names
	Cause     string // the ID of the message that it replies to
	Task      int64  // the Seq of the task that it asks for or is about; 0: none
	Thread    string
	Trace     string
	From      string
	To        string // with commas between several
	Via       Via
	Hash      string    // names its content
	Lost      []string  // what its dialect had no words for
	Inbox     string    // the file below the root that its line is for; "" for none
	Delivered time.Time // when its line was appended there; zero: it was not
	Body      []byte    // the line, without its end
}

// A Conversation is what is remembered of a task beside the task itself when its
// requester is notified in messages, or when it belongs to another task. A task that
// was asked for in AINL and belongs to none has no Conversation.
type Conversation struct {
	Task     int64        // the task's Seq
	Message  string       // the sender's name for the message that asked for the task
	Thread   string       // the conversation that it is part of
	Trace    string       // the chain of work, over many conversations; "" for none
	Tie      envelope.Tie // how it belongs to its parent
	Notified int64        // the Seq of the last event of which its requester was notified
	Open     bool         // more notifications may follow
	Rounds   int          // how often its overseer has sent it back
}

// An Announcement says what an agent or another sender can do (CLOWL-29).
type Announcement struct {
	Name     string
	Supports []string
	Since    time.Time // of the latest one
}
