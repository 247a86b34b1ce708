package task

import (
	"time"

	"mailboxd/envelope"
)

// A Via is the way by which a message reached the daemon. It decides how far the sender's
// name can be trusted.
type Via string

// The ways.
const (
	ByLine   Via = "line"   // in a task file, to which any program may append
	ByRun    Via = "run"    // printed by an agent's run
	BySocket Via = "socket" // over the control socket
	ByDaemon Via = "daemon" // written by the daemon
)

// A Message is a recorded message.
type Message struct {
	Seq       int64 // the order of recording; set by the ledger
	Time      time.Time
	Dialect   envelope.Dialect
	Act       envelope.Act
	ID        string // given by the sender; "" if the dialect has no ids
	Cause     string // the ID of the message that it replies to
	Task      int64  // the Seq of the task that it requests or is about; 0: none
	Thread    string
	Trace     string
	From      string
	To        string // separated by commas
	Via       Via
	Hash      string    // of its content
	Lost      []string  // content that its dialect can't express
	Inbox     string    // the inbox file for its line, below the root; "" for none
	Delivered time.Time // when its line was appended there; zero: not yet
	Body      []byte    // the line without its newline
}

// A Conversation holds the messaging state of a task with a parent, or with a requester
// that gets notifications. An AINL request without a parent has none.
type Conversation struct {
	Task     int64        // the task's Seq
	Message  string       // the ID of the message that requested the task
	Thread   string       // the thread of the task
	Trace    string       // the trace over several threads; "" for none
	Tie      envelope.Tie // to its parent
	Notified int64        // the Seq of the last event that its requester was notified of
	Open     bool         // more notifications can follow
	Rounds   int          // how often its overseer sent it back
}

// A Command is a request with an idempotency key. The key belongs to its sender, in one run.
type Command struct {
	Sender, Run, Key string
	Hash             string      // of the command, without what differs when it is sent again
	Task             envelope.ID // the task that carries it out
}

// An Announcement lists the capabilities of an agent or another sender (CLOWL-29).
type Announcement struct {
	Name     string
	Supports []string
	Since    time.Time // the time of the latest one
}
