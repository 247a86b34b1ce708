package main

import (
	"time"

	"github.com/spf13/cobra"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/route"
)

func routeCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "route",
		Short: "Test and explain the choice of agents",
		Long: `Test which agent a task would get that names none, explain which agent a task got or
what it waits for, and make recorded decisions again from their inputs. None of this
changes anything.`,
		Example: `  mailboxd route test --requires skill:research
  mailboxd route explain market-study
  mailboxd route replay market-study`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(routeTestCommand(g), routeExplainCommand(g), routeReplayCommand(g))
	return cmd
}

func routeTestCommand(g *globals) *cobra.Command {
	q, file, asJSON := reader.RouteTest{}, "", false
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Print which agent a task would get now",
		Long:  "Print which agent a task would get now, and why the others would not get it. The task\nis that of a file, or one with the needs of the flags.",
		Example: `  mailboxd route test --requires skill:research --prefers tool:browser
  mailboxd route test -f request.json`,
		Args: cobra.NoArgs,
		RunE: withDaemon(g, func(cmd *cobra.Command, _ []string, _ *reader.Reader, daemon *client.Client) error {
			line, err := q.Read(cmd.InOrStdin(), file, loginName(), time.Now())
			if err != nil {
				return err
			}
			record, err := daemon.Route(cmd.Context(), line)
			if err != nil {
				return err
			}
			return printRoute(cmd, asJSON)(route.ReadRecord(record))
		}),
	}
	flags := cmd.Flags()
	flags.StringVarP(&file, "file", "f", "", "a file with one task request; - is standard input")
	flags.StringVar(&q.To, "to", "", "an agent, or group:NAME")
	flags.StringSliceVar(&q.Requires, "requires", nil, "capabilities that the agent must have, such as skill:x@^1.2")
	flags.StringSliceVar(&q.Prefers, "prefers", nil, "tags, tools or capabilities that it should have")
	flags.StringSliceVar(&q.Tools, "tools", nil, "the tools that the task allows")
	flags.StringVar(&q.Network, "network", "", "the widest network: none, egress-restricted or egress-allowed")
	flags.BoolVar(&q.Sandbox, "sandbox", false, "the agent must run in a sandbox")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func routeExplainCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "explain ID",
		Short:   "Explain which agent a task got",
		Long:    "Print the latest decision about the agent of a task. For a task that waits for its agent,\nprint what the daemon would decide now.",
		Example: "  mailboxd route explain market-study",
		Args:    cobra.ExactArgs(1),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			id, err := r.Find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printRoute(cmd, asJSON)(r.LastDecision(cmd.Context(), id))
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// printRoute prints a decision that was read without an error.
func printRoute(cmd *cobra.Command, asJSON bool) func(route.Record, error) error {
	return func(r route.Record, err error) error {
		if err != nil {
			return err
		}
		return view.PrintRoute(cmd.OutOrStdout(), r, asJSON)
	}
}

func routeReplayCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "replay ID",
		Short:   "Make the decisions about a task again",
		Long:    "Make the recorded decisions about the agent of a task again from their inputs. The exit\ncode is 1 if one of them differs.",
		Example: "  mailboxd route replay market-study",
		Args:    cobra.ExactArgs(1),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			id, err := r.Find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			all, err := r.ReplayDecisions(cmd.Context(), id)
			if err != nil {
				return err
			}
			return reader.PrintReplays(cmd.OutOrStdout(), all, asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}
