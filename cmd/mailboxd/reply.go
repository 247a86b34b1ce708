package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/client"
	"mailboxd/internal/exit"
	"mailboxd/internal/reader"
	"mailboxd/internal/task"
	"mailboxd/internal/term"
	"mailboxd/internal/view"
	"mailboxd/mailbox"
)

func replyCommand(g *globals) *cobra.Command {
	which, as, asJSON := &chosen{}, "", false
	cmd := &cobra.Command{
		Use:   "reply TASK TEXT",
		Short: "Send a message to the agent of a task",
		Long: `Append a message for the agent of a task to the mailbox, in the dialect of the
request: INF in CLowl, message in CAP. If the agent waits for a reply, its task
continues. Otherwise the message goes to its inbox, and the command says so. A
reply does not prove your identity; use an approval where that matters.`,
		Example: `  mailboxd reply T1 "Regional breakdown by major market."
  mailboxd reply T1 "Go ahead" --as planner`,
		Args: cobra.ExactArgs(2),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			sent, err := reply(cmd.Context(), r, which, args[0], args[1], as)
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), sent)
			}
			return sent.print(cmd.OutOrStdout())
		}),
	}
	cmd.Flags().StringVar(&as, "as", "user", "the sender of the message")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	which.add(cmd)
	completeFlag(cmd, "as", completeAgents(g))
	return cmd
}

// A sentReply is a message in the mailbox.
type sentReply struct {
	Task   envelope.ID `json:"task_id"`
	To     string      `json:"to"`
	File   string      `json:"file"`
	Offset int64       `json:"offset"`
	Waited bool        `json:"waited"` // the agent waits for it

	state string // of the task
}

func (r sentReply) print(w io.Writer) error {
	to, id := term.OneLine(r.To), term.OneLine(string(r.Task))
	words := fmt.Sprintf("delivered to %s, which waits for a reply about %s", to, id)
	if !r.Waited {
		words = fmt.Sprintf("delivered to %s; %s was not waiting for a reply: %s", to, id, r.state)
	}
	_, err := fmt.Fprintln(w, words)
	return err
}

// reply appends a message for the agent of a task.
func reply(ctx context.Context, r *reader.Reader, which *chosen, arg, text, as string) (sentReply, error) {
	if text == "" || as == "" {
		return sentReply{}, exit.With(exit.Usage, "TEXT and --as must not be empty")
	}
	id, err := which.find(ctx, r, arg)
	if err != nil {
		return sentReply{}, err
	}
	file, err := r.Details(ctx, id)
	if err != nil {
		return sentReply{}, err
	}
	line, err := message(file, text, as)
	if err != nil {
		return sentReply{}, err
	}
	name, offset, err := mailbox.Append(r.Root, line)
	t := file.Task
	waits := t.State == task.Held && slices.Contains(t.Held, task.Reply)
	return sentReply{Task: id, To: t.Agent, File: name, Offset: offset, Waited: waits, state: term.OneLine(string(id)) + " is " + view.StateOf(t)}, err
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
