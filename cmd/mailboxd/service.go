package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"mailboxd/internal/config"
	"mailboxd/internal/exit"
	"mailboxd/internal/setup"
	"mailboxd/internal/term"
)

func serviceCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Run mailboxd as a service of your systemd",
		Long: `Service makes mailboxd a service of your own systemd: it starts at login, and
again when it fails. Agents do not notice when it is stopped, restarted or upgraded.`,
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
		Short: "Write the unit, and start the service now and at each login",
		Long: `Install writes a unit for your systemd, with the PATH of your login shell, and
starts it now and at each login. Done again, it replaces the unit and restarts the
daemon, which is how to change to another version. With --linger your services go
on when you log out, and start at boot.`,
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
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only print the unit")
	cmd.Flags().BoolVar(&linger, "linger", false, "let your services go on when you log out")
	return cmd
}

func uninstallCommand() *cobra.Command {
	dry := false
	cmd := &cobra.Command{
		Use:     "uninstall",
		Short:   "Stop the service and remove its unit",
		Long:    "Uninstall stops the service and removes its unit, and lets your services end at\nlogout again if install changed that. Agents that run go on until they are done;\nconfiguration, mailbox and state stay.",
		Example: "  mailboxd service uninstall\n  mailboxd service uninstall --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return setup.Uninstall(cmd.Context(), cmd.OutOrStdout(), dry)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be removed")
	return cmd
}

func statusCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Say whether the service is installed and running",
		Long:    "Status says how the service stands. Its exit code is 7 when it does not run.",
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
