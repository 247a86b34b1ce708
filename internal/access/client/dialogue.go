package client

import (
	"context"
	"net/url"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// A Dialogue has the messages of a conversation, or of a chain of work, and what
// happened meanwhile to the tasks in it.
type Dialogue struct {
	Kind     string    `json:"kind"`     // thread or trace
	ID       string    `json:"id"`       // its name
	Tasks    []Part    `json:"tasks"`    // in the order in which they were accepted
	Messages []Message `json:"messages"` // oldest first; at most the latest thousand
	Events   []Event   `json:"events"`   // of the tasks, oldest first; at most the latest thousand of each
}

// A Part is a task of a Dialogue.
type Part struct {
	Task   Task        `json:"task"`
	Parent envelope.ID `json:"parent,omitempty"`
	Tie    string      `json:"tie,omitempty"`    // how it belongs to its parent: member, transfer, fork, assist or oversee; absent: its agent went on
	Asks   string      `json:"asks,omitempty"`   // what it asks for, in words
	Answer string      `json:"answer,omitempty"` // how it ended, in words
}

// A Message is a message between participants.
type Message struct {
	Seq     int64          `json:"seq"` // the order in which messages were remembered
	Time    time.Time      `json:"time"`
	Dialect string         `json:"dialect"`              // of the line: ainl, clowl or cap
	Act     string         `json:"act"`                  // as task.requested
	ID      string         `json:"message_id,omitempty"` // what its sender calls it
	Cause   string         `json:"reply_to,omitempty"`   // the message_id of the message that it is a reply to
	Task    envelope.ID    `json:"task_id,omitempty"`    // which task it asks for or is about
	Thread  string         `json:"thread,omitempty"`
	Trace   string         `json:"trace,omitempty"`
	From    string         `json:"from"`
	To      string         `json:"to"`              // with commas between several
	Via     string         `json:"via"`             // how it came: line, run or socket; daemon: we say it
	Text    string         `json:"text,omitempty"`  // what it says to people
	Waits   bool           `json:"waits,omitzero"`  // its sender waits for an answer
	Lost    []string       `json:"lost,omitempty"`  // what its dialect had no words for
	Inbox   string         `json:"inbox,omitempty"` // the file below the mailbox that it is for
	Posted  time.Time      `json:"posted,omitzero"` // when it lay there
	Line    jsontext.Value `json:"line,omitempty"`  // as it was said
}

// A Conversation is the conversation of a task that messages are about, or that belongs
// to another task.
type Conversation struct {
	Message  string `json:"message_id,omitempty"` // the message that asked for it
	Thread   string `json:"thread,omitempty"`     // which conversation it is part of
	Trace    string `json:"trace,omitempty"`      // which chain of work
	Tie      string `json:"tie,omitempty"`        // how it belongs to its parent
	Notified int64  `json:"told"`                 // sequence number of the last event that its requester was notified of
	Open     bool   `json:"open,omitzero"`        // there may be more to tell
	Rounds   int    `json:"rounds,omitzero"`      // how often its overseer has sent it back
}

// Thread returns the conversation of that name, or that a task is part of, or
// else the chain of work of that name.
func (c *Client) Thread(ctx context.Context, id string) (d Dialogue, err error) {
	return d, c.get(ctx, Base+"/thread", url.Values{"id": {id}}, &d)
}

// Trace returns the chain of work of that name, or that a task or a conversation
// is part of; of a task that is part of none its conversation.
func (c *Client) Trace(ctx context.Context, id string) (d Dialogue, err error) {
	return d, c.get(ctx, Base+"/trace", url.Values{"id": {id}}, &d)
}
