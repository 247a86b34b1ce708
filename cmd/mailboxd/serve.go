package main

import (
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/daemon"
)

func serveCommand(g *globals) *cobra.Command {
	once := false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon: take tasks and run their agents",
		Long: `Read the task lines of the mailbox, run the agents of the configuration, and write
one result file for each task. Serve continues where the last serve stopped.

SIGTERM, SIGINT: stop reading and exit. Agents keep running, and the next serve
delivers their answers. With stop_agents_on_exit, agents are ended instead, after
limits.shutdown_grace.

SIGHUP: read agents, policy and approvers again. An invalid file changes nothing.`,
		Example: `  mailboxd serve
  mailboxd serve --once      # do the present tasks, then exit`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := config.Examine(g.config, g.root)
			if err == nil {
				err = found.Mistakes.Err()
			}
			if err != nil {
				return err
			}
			out := term.NewConsole(cmd.ErrOrStderr(), found.Config.Log.Level, found.Config.Log.Format)
			logMistakes(out.Log, found.Mistakes)
			return daemon.Serve(cmd.Context(), found.Config, daemon.Options{Version: version(), ConfigPath: g.config, Root: g.root, Once: once}, out)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "do the present tasks, then exit")
	return cmd
}

// logMistakes logs what serve starts without, and variables that set nothing. The registry
// logs about agents and manifests.
func logMistakes(log zerolog.Logger, found config.Mistakes) {
	for _, m := range found {
		if m.Effect == config.Lacks || m.Effect == config.Unset || m.Effect == config.Warns && m.File == "" {
			log.Warn().Str("reason", m.String()).Msg("configuration has a mistake")
		}
	}
}
