package main

import (
	"context"

	"github.com/spf13/cobra"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/view"
)

func runnersCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "runners",
		Short: "List the runners, which run agents on other machines",
		Long: `List the runners: programs on other machines that run agents for this mailbox. A
runner that gets no tasks shows why, and what to do about it.`,
		Example: "  mailboxd runners\n  mailboxd runners --json | jq -r 'select(.status == \"unavailable\").reason'",
		Args:    cobra.NoArgs,
		RunE: withDaemon(g, func(cmd *cobra.Command, _ []string, _ *reader.Reader, daemon *client.Client) error {
			all, err := daemon.Runners(cmd.Context())
			if err != nil {
				return err
			}
			return view.PrintRunners(cmd.OutOrStdout(), all, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	for _, v := range runnerVerbs {
		cmd.AddCommand(v.command(g))
	}
	return cmd
}

// A runnerVerb is a command that changes a runner.
type runnerVerb struct {
	name, short, long string

	do func(*client.Client, context.Context, string, client.ControlOptions) (client.Runners, error)
}

var runnerVerbs = []runnerVerb{
	{"drain", "Give a runner no new tasks",
		"Give a runner no new tasks, until mailboxd runners resume. Its runs go on. It lasts\n" +
			"beyond a restart of the daemon.", (*client.Client).DrainRunner},
	{"resume", "Give a drained runner tasks again", "Give a runner tasks again that was drained.", (*client.Client).ResumeRunner},
	{"remove", "Forget a runner",
		"Forget a runner and the agents that it announced. Its runs are lost; those of an\n" +
			"idempotent agent begin again. A runner whose state was lost or rolled back may\n" +
			"come again after that. Its key still lets it in: mailboxd-hub remove takes that away.", (*client.Client).RemoveRunner},
}

func (v runnerVerb) command(g *globals) *cobra.Command {
	var request client.ControlOptions
	asJSON := false
	cmd := &cobra.Command{
		Use: v.name + " NAME", Short: v.short, Long: v.long, Example: "  mailboxd runners " + v.name + " gpu-1",
		Args: cobra.ExactArgs(1),
		RunE: withDaemon(g, func(cmd *cobra.Command, args []string, _ *reader.Reader, daemon *client.Client) error {
			all, err := v.do(daemon, cmd.Context(), args[0], request)
			if err != nil {
				return err
			}
			return view.PrintRunners(cmd.OutOrStdout(), all.Runners, asJSON)
		}),
	}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "the reason, for the record")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}
