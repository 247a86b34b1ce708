package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

func reloadCommand(g *globals) *cobra.Command {
	return comparing(g, (*client.Client).Reload, view.PrintReload, &cobra.Command{
		Use:   "reload",
		Short: "Have the daemon read its configuration again",
		Long: `Have the daemon read its configuration file again, as SIGHUP does, and print what
changed. Agents, policy, approvers, senders and conversation change at once; other
keys need a restart. A file with mistakes changes nothing: they are printed, and the
exit code is 1.`,
		Example: "  mailboxd config diff && mailboxd reload",
	})
}

func configDiffCommand(g *globals) *cobra.Command {
	return comparing(g, (*client.Client).ConfigDiff, view.PrintConfigDiff, &cobra.Command{
		Use:   "diff",
		Short: "Compare the daemon's configuration with its file",
		Long: `Compare the configuration that the daemon has in force with what its file says now.
Manifests, definitions and secrets are compared too; schemas are not. Secrets are not
shown. The exit code is 1 if the file has mistakes.`,
		Example: "  mailboxd config diff",
	})
}

// comparing completes a command that asks the daemon for a comparison and prints it.
func comparing(
	g *globals, ask func(*client.Client, context.Context) (client.ConfigDiff, error),
	show func(w, mistakes io.Writer, d client.ConfigDiff) error, cmd *cobra.Command,
) *cobra.Command {
	asJSON := false
	cmd.Args = cobra.NoArgs
	cmd.PreRun = func(*cobra.Command, []string) { g.quiet = true }
	cmd.RunE = withDaemon(g, func(cmd *cobra.Command, _ []string, _ *reader.Reader, daemon *client.Client) error {
		diff, err := ask(daemon, cmd.Context())
		switch {
		case err != nil:
			return err
		case asJSON:
			err = term.PrintJSON(cmd.OutOrStdout(), diff)
		default:
			err = show(cmd.OutOrStdout(), cmd.ErrOrStderr(), diff)
		}
		if err == nil && len(diff.Mistakes) > 0 {
			err = &exit.Error{Code: exit.Failed}
		}
		return err
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
