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
	cmd.Use, cmd.Short = "approve ID...", "Approve a task"
	cmd.Long = `Approve a task that is held for approval, so that it may start, or the answer of a
task in review, so that it becomes the result. The approval covers what mailboxd
show prints. If the request, command, directory, tools or budget change, the daemon
asks again. You can't approve a task that you requested, and an agent can't approve
any task.`
	cmd.Example = "  mailboxd show nightly-report\n  mailboxd approve nightly-report --note 'ticket 4711'\n" +
		"  mailboxd approve nightly-report --as sre-oncall@example.com"
	cmd.Flags().StringVar(&word.Note, "note", "", "a note for the record")
	return cmd
}

func denyCommand(g *globals) *cobra.Command {
	cmd, word := decideCommand(g, (*client.Client).Deny)
	cmd.Use, cmd.Short = "deny ID... --reason WHY", "Deny a task"
	cmd.Long = `End a task that is held for approval or in review. The result has the status
rejected, your name and the reason. It does not have the answer of the agent.`
	cmd.Example = "  mailboxd deny nightly-report --reason 'not in the freeze'"
	cmd.Flags().StringVar(&word.Note, "reason", "", "the reason, for the requester; required")
	return cmd
}

// decideCommand is what both have in common; the word is what is decided with.
func decideCommand(g *globals, decide func(*client.Client, context.Context, envelope.ID, client.Decision) (client.Task, error)) (*cobra.Command, *client.Decision) {
	word, which, asJSON := &client.Decision{}, &chosen{}, false
	cmd := &cobra.Command{
		Args: cobra.MinimumNArgs(1),
		RunE: withDaemon(g, func(cmd *cobra.Command, args []string, r *reader.Reader, daemon *client.Client) error {
			return forEach(cmd, args, func(arg string) error {
				id, err := which.find(cmd.Context(), r, arg)
				if err != nil {
					return err
				}
				task, err := decide(daemon, cmd.Context(), id, *word)
				if err != nil {
					return err
				}
				return printChanged(cmd.OutOrStdout(), task, asJSON)
			})
		}),
	}
	cmd.Flags().StringVar(&word.As, "as", "", "the approver name to use, if you have several")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each task as one JSON object")
	which.add(cmd)
	return cmd, word
}
