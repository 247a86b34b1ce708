package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/setup"
)

func serviceCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Run mailboxd as a systemd user service",
		Long: `Run mailboxd as a service of your systemd user manager. It starts at login, and
again after a failure. A stop, restart or upgrade of the service does not disturb
running agents.`,
		Example: "  mailboxd service install --linger\n  mailboxd service status\n  mailboxd service uninstall",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(installCommand(g), uninstallCommand(), statusCommand())
	return cmd
}

func installCommand(g *globals) *cobra.Command {
	dry, linger := false, false
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install and start the service",
		Long: `Write a systemd user unit with the PATH of your login shell, start the service,
and enable it at login. If the service is installed already, replace the unit and
restart the daemon; this is how to upgrade.`,
		Example: `  mailboxd service install
  mailboxd service install --linger
  mailboxd service install --dry-run > mailboxd.service`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := g.load() // a service would fail with it, too
			if err != nil {
				return err
			}
			unit, err := setup.UnitFor(cmd.Context(), cmp.Or(g.config, config.DefaultPath()), g.root, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if dry {
				text, err := unit.Text()
				fmt.Fprint(cmd.OutOrStdout(), text)
				return err
			}
			if err := setup.CheckAlone(cmd.Context(), cfg.Root); err != nil {
				return err
			}
			return setup.Install(cmd.Context(), cmd.OutOrStdout(), unit, linger)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the unit, and install nothing")
	cmd.Flags().BoolVar(&linger, "linger", false, "keep the service running after logout, and start it at boot")
	return cmd
}

func uninstallCommand() *cobra.Command {
	dry := false
	cmd := &cobra.Command{
		Use:     "uninstall",
		Short:   "Stop the service and remove its unit",
		Long:    "Stop the service and remove its unit. If install turned on lingering, turn it off.\nRunning agents finish. The configuration, the mailbox and the state are kept.",
		Example: "  mailboxd service uninstall\n  mailboxd service uninstall --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setup.Uninstall(cmd.Context(), cmd.OutOrStdout(), dry)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print what would be removed, and remove nothing")
	return cmd
}

func statusCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show whether the service is installed and running",
		Long:    "Show the state of the service. The exit code is 7 if it is not running.",
		Example: "  mailboxd service status\n  mailboxd service status --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := setup.ReadServiceStatus(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				err = term.PrintJSON(cmd.OutOrStdout(), s)
			} else {
				err = s.Print(cmd.OutOrStdout())
			}
			if err == nil && s.Active != "active" {
				err = &exit.Error{Code: exit.Down}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
