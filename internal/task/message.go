package task

import (
	"time"

	"mailboxd/envelope"
)

// A Via is how a message came to us, which is what its sender's name is worth.
type Via string

// The ways.
const (
	ByLine   Via = "line"   // in a task file, to which anybody may append
	ByRun    Via = "run"    // an agent's run printed it
	BySocket Via = "socket" // over the control socket
	ByUs     Via = "daemon" // we say it
)

// A Message is something that was said, as it is remembered.
type Message struct {
	Seq     int64 // the order in which they were remembered; Record gives it
	Time    time.Time
	Dialect envelope.Dialect
	Act     envelope.Act
	ID      string // what its sender calls it; "" where messages have no names
	Cause   string // the ID of the message that it is a reply to
	Task    int64  // the Seq of the task that it asks for or is about; 0: none
	Thread  string
	Trace   string
	From    string
	To      string // with commas between several
	Via     Via
	Hash    string    // names its content
	Lost    []string  // what its dialect had no words for
	Inbox   string    // the file below the root that its line is for; "" for none
	Posted  time.Time // when its line was appended there; zero: it was not
	Body    []byte    // the line, without its end
}

// A Talk is what is remembered of a task beside the task itself when somebody
// hears about it in messages, or when it belongs to another one. A task that
// was asked for in AINL and belongs to none has no Talk.
type Talk struct {
	Task    int64        // the task's Seq
	Message string       // the message that asked for it, by the name its sender gave it
	Thread  string       // which conversation it is part of
	Trace   string       // which chain of work, over many of them; "" for none
	Tie     envelope.Tie // how it belongs to its parent
	Told    int64        // the Seq of the event up to which its requester was told
	Open    bool         // there may be more to tell
	Rounds  int          // how often its overseer has sent it back
}

// A Speaker is somebody who has announced what it can do (CLOWL-29).
type Speaker struct {
	Name     string
	Supports []string
	Since    time.Time // when it said so last
}
