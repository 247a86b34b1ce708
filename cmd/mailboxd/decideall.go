package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// approveAll approves all tasks that wait for the person: those that it shows at the terminal, with
// the digests that it shows, or whatever waits with --unseen.
func (f *approval) approveAll(cmd *cobra.Command, r *reader.Reader, daemon *client.Client) error {
	ctx := cmd.Context()
	if !f.word.Unseen && !term.Interactive() {
		return exit.With(exit.Usage, "approve --all: no terminal shows what you approve: add --unseen, or approve each task with --digest")
	}
	waiting, err := waitingApprovals(ctx, r, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if len(waiting) == 0 {
		_, err := fmt.Fprintln(cmd.ErrOrStderr(), "nothing waits for your approval")
		return err
	}
	if !f.word.Unseen {
		if err := confirmAll(ctx, waiting); err != nil {
			return err
		}
	}
	var ids []string
	digests := map[string]string{}
	for _, w := range waiting {
		ids, digests[string(w.id)] = append(ids, string(w.id)), w.digest
	}
	return forEach(cmd, ids, func(name string) error {
		id, word := envelope.ID(name), f.word
		s, level, err := statement(ctx, daemon, id, task.Approved, word.As, "")
		if err != nil {
			return err
		}
		if !word.Unseen {
			word.Digest = digests[name]
		}
		return f.send(cmd, daemon, id, s, level, word)
	})
}

// A waitingApproval is a question to the person about a task.
type waitingApproval struct {
	id      envelope.ID
	digest  string
	content string // in lines
}

// waitingApprovals returns what is asked of the person, and prints which tasks another approver
// must decide.
func waitingApprovals(ctx context.Context, r *reader.Reader, w io.Writer) (all []waitingApproval, err error) {
	list, err := r.List(ctx, reader.Query{Filter: client.Filter{States: []task.State{task.Held, task.Review}}})
	if err != nil {
		return nil, err
	}
	for _, t := range list.Tasks {
		if t.Revision == 1 && !view.WaitsForApproval(t) { // of another one, an earlier revision may be in review
			continue
		}
		details, err := r.Details(ctx, t.ID)
		if err != nil {
			return nil, err
		}
		content, asked := (&view.Details{TaskDetails: details}).AskedContent()
		switch {
		case asked.Asked.IsZero(): // decided meanwhile, or an overseer reviews it
		case asked.Own == task.SelfRefuse.String():
			fmt.Fprintf(w, "%s: you requested it; another approver must decide\n", term.OneLine(string(t.ID)))
		default:
			all = append(all, waitingApproval{t.ID, asked.Digest, content})
		}
	}
	return all, nil
}

// confirmAll shows at the terminal what is asked, and returns an error unless the person agrees.
func confirmAll(ctx context.Context, waiting []waitingApproval) error {
	var text strings.Builder
	for _, w := range waiting {
		text.WriteString(w.content + "\n\n")
	}
	what := "this task"
	if len(waiting) > 1 {
		what = fmt.Sprintf("these %d tasks", len(waiting))
	}
	agreed, err := term.Confirm(ctx, text.String()+"Approve "+what+"?")
	if err == nil && !agreed {
		err = errors.New("nothing is approved")
	}
	return err
}
