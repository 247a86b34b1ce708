package main

import (
	"context"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/reader"
)

func approveCommand(g *globals) *cobra.Command {
	cmd, word := decideCommand(g, (*client.Client).Approve)
	cmd.Use, cmd.Short = "approve ID", "Let a task go on that waits for a person"
	cmd.Long = `Approve lets a task start that is held for approval, or shows the result of one
that is in review. It is for what mailboxd show says is asked, and void when
anything of that changes. Nobody approves a task that names them as its
requester, and no agent approves any.`
	cmd.Example = "  mailboxd show nightly-report && mailboxd approve nightly-report --note 'ticket 4711'\n" +
		"  mailboxd approve nightly-report --as sre-oncall@example.com"
	cmd.Flags().StringVar(&word.Note, "note", "", "a note for the record")
	return cmd
}

func denyCommand(g *globals) *cobra.Command {
	cmd, word := decideCommand(g, (*client.Client).Deny)
	cmd.Use, cmd.Short = "deny ID --reason WHY", "End a task that waits for a person"
	cmd.Long = `Deny ends a task that is held for approval, or in review: its result says who
denied it and why, and the answer of its agent is not shown.`
	cmd.Example = "  mailboxd deny nightly-report --reason 'not in the freeze'"
	cmd.Flags().StringVar(&word.Note, "reason", "", "why, which the requester is told; needed")
	return cmd
}

// decideCommand is what both have in common; the word is what is decided with.
func decideCommand(g *globals, decide func(*client.Client, context.Context, envelope.ID, client.Decision) (client.Task, error)) (*cobra.Command, *client.Decision) {
	word, asJSON := &client.Decision{}, false
	cmd := &cobra.Command{
		Args: cobra.ExactArgs(1),
		RunE: withDaemon(g, func(cmd *cobra.Command, args []string, r *reader.Reader, daemon *client.Client) error {
			id, err := r.Find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			task, err := decide(daemon, cmd.Context(), id, *word)
			if err != nil {
				return err
			}
			return printChanged(cmd.OutOrStdout(), task, asJSON)
		}),
	}
	cmd.Flags().StringVar(&word.As, "as", "", "which of your approver names to use")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the task as one JSON object")
	return cmd, word
}
