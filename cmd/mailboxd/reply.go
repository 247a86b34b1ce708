package main

import (
	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
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
			if args[1] == "" || as == "" {
				return exit.With(exit.Usage, "TEXT and --as must not be empty")
			}
			id, err := which.find(cmd.Context(), r, args[0])
			if err != nil {
				return err
			}
			sent, err := r.Reply(cmd.Context(), id, args[1], as)
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), sent)
			}
			return sent.Print(cmd.OutOrStdout())
		}),
	}
	cmd.Flags().StringVar(&as, "as", "user", "the sender of the message")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	which.add(cmd)
	completeFlag(cmd, "as", completeAgents(g))
	return cmd
}
