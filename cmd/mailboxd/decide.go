package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/reader"
	"mailboxd/internal/task"
)

func approveCommand(g *globals) *cobra.Command {
	cmd, word := decideCommand(g, task.Approved, (*client.Client).Approve)
	cmd.Use, cmd.Short = "approve ID...", "Approve a task"
	cmd.Long = `Approve a task that is held for approval, so that it may start, or the answer of a
task in review, so that it becomes the result. The approval covers what mailboxd
show prints. If the request, command, directory, tools or budget change, the daemon
asks again. You decide about a task that you requested as approval.self says: not at
all, confirmed at a terminal, or as about any other. An agent can't approve any task.
If your entry in approvers or policy.proof asks for a proof, your ssh-agent signs the
decision, or the daemon asks at your terminal. With a passkey you decide on the page:
mailboxd web.

With --socket you decide about tasks of another user's daemon that names you in
approvers: ps and show take the flag, too.`
	cmd.Example = "  mailboxd show nightly-report\n  mailboxd approve nightly-report --note 'ticket 4711'\n" +
		"  mailboxd approve nightly-report --as sre-oncall@example.com"
	cmd.Flags().StringVar(&word.Note, "note", "", "a note for the record")
	return cmd
}

func denyCommand(g *globals) *cobra.Command {
	cmd, word := decideCommand(g, task.Denied, (*client.Client).Deny)
	cmd.Use, cmd.Short = "deny ID... --reason WHY", "Deny a task"
	cmd.Long = `End a task that is held for approval or in review. The result has the status
rejected, your name and the reason. It does not have the answer of the agent.`
	cmd.Example = "  mailboxd deny nightly-report --reason 'not in the freeze'"
	cmd.Flags().StringVar(&word.Note, "reason", "", "the reason, for the requester; required")
	return cmd
}

// decideCommand is what both have in common; the word is what is decided with.
func decideCommand(g *globals, decision task.Decision, decide func(*client.Client, context.Context, envelope.ID, client.Decision) (client.Task, error)) (*cobra.Command, *client.Decision) {
	word, which, asJSON := &client.Decision{}, &chosen{}, false
	cmd := &cobra.Command{
		Args: cobra.MinimumNArgs(1),
		RunE: withDaemon(g, func(cmd *cobra.Command, args []string, r *reader.Reader, daemon *client.Client) error {
			return forEach(cmd, args, func(arg string) error {
				id, err := which.find(cmd.Context(), r, arg)
				if err != nil {
					return err
				}
				proven, err := prove(cmd.Context(), daemon, id, decision, *word)
				if err != nil {
					return err
				}
				changed, err := decide(daemon, cmd.Context(), id, proven)
				if err != nil {
					return err
				}
				return printChanged(cmd.OutOrStdout(), changed, asJSON)
			})
		}),
	}
	cmd.Flags().StringVar(&word.As, "as", "", "the approver name to use, if you have several")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each task as one JSON object")
	g.addSocket(cmd)
	which.add(cmd)
	return cmd, word
}

// prove adds the proof that a decision needs: a signature by the ssh-agent, or that the daemon
// asks at the terminal.
func prove(ctx context.Context, daemon *client.Client, id envelope.ID, decision task.Decision, word client.Decision) (client.Decision, error) {
	s, err := daemon.Statement(ctx, id, string(decision), word.As)
	if err != nil {
		return word, err
	}
	if s.Task != id || s.Decision != string(decision) {
		return word, fmt.Errorf("the daemon asks to sign a decision about %s, not about %s", s.Task, id)
	}
	switch level, err := task.ParseProofLevel(s.Needs); {
	case err != nil:
		return word, err
	case level == task.ProofNone:
		return word, nil
	case level == task.ProofTerminal:
		word.Terminal = true
		return word, nil
	}
	word.Proof, err = reader.Sign(ctx, s)
	return word, err
}
