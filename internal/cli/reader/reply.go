package reader

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
)

// A SentReply is a message to the agent of a task, in the mailbox.
type SentReply struct {
	Task   envelope.ID `json:"task_id"`
	To     string      `json:"to"`
	File   string      `json:"file"`
	Offset int64       `json:"offset"`
	Waited bool        `json:"waited"` // the agent waits for it

	state string // of the task
}

// Print says where the reply went, and whether the agent waited for it.
func (r SentReply) Print(w io.Writer) error {
	to, id := term.OneLine(r.To), term.OneLine(string(r.Task))
	words := fmt.Sprintf("delivered to %s, which waits for a reply about %s", to, id)
	if !r.Waited {
		words = fmt.Sprintf("delivered to %s; %s was not waiting for a reply: %s", to, id, r.state)
	}
	_, err := fmt.Fprintln(w, words)
	return err
}

// Reply appends a message for the agent of a task.
func (r *Reader) Reply(ctx context.Context, id envelope.ID, text, as string) (SentReply, error) {
	file, err := r.Details(ctx, id)
	if err != nil {
		return SentReply{}, err
	}
	if t := file.Task; t.State == task.Done && cmp.Or(t.Dialect, string(envelope.AINL)) == string(envelope.AINL) {
		return SentReply{}, exit.With(exit.Failed, "task %s is done, so no reply reaches its agent; to ask on: %s", id, view.AskFurther(id))
	}
	line, err := message(file, text, as)
	if err != nil {
		return SentReply{}, err
	}
	name, offset, err := mailbox.Append(r.Root, line)
	t := file.Task
	waits := t.State == task.Held && task.EndedBy(t.Held, task.Answer)
	return SentReply{Task: id, To: t.Agent, File: name, Offset: offset, Waited: waits, state: term.OneLine(string(id)) + " is " + view.StateOf(t)}, err
}

// message makes a line that tells the agent of a task something. For an AINL task it is
// a CAP message, since AINL has no messages.
func message(file client.TaskDetails, text, as string) ([]byte, error) {
	t, about := file.Task, client.Conversation{}
	if file.Conversation != nil {
		about = *file.Conversation
	}
	d := envelope.Dialect(cmp.Or(t.Dialect, string(envelope.CAP)))
	codec, ok := dialect.Of(d)
	if !ok {
		return nil, fmt.Errorf("%s is said in %s, which this version does not speak", t.ID, d)
	}
	line, _ := codec.Encode(envelope.Message{
		Act: envelope.Informs, Task: t.ID, Cause: about.Message, Thread: about.Thread, Trace: about.Trace,
		From: as, To: []string{t.Agent}, Time: time.Now(), Text: text,
	})
	_, findings := codec.Decode(line, envelope.Strict)
	if findings.Refused() {
		return nil, exit.With(exit.Usage, "invalid message: %s", findings.Refusals())
	}
	return line, nil
}
