package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"mailboxd/internal/service"
	"mailboxd/mailbox"
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
			unit, err := unitFor(cmd.Context(), g, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if dry {
				text, err := unit.Text()
				fmt.Fprint(cmd.OutOrStdout(), text)
				return err
			}
			if err := alone(cmd.Context(), g); err != nil {
				return err
			}
			return install(cmd.Context(), cmd.OutOrStdout(), unit, linger)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only print the unit")
	cmd.Flags().BoolVar(&linger, "linger", false, "let your services go on when you log out")
	return cmd
}

// alone refuses to start a service beside a daemon that was started by hand:
// it would find the mailbox locked, again and again.
func alone(ctx context.Context, g *globals) error {
	cfg, err := g.load()
	if err != nil {
		return err
	}
	pid, served, err := mailbox.ServedBy(cfg.Root)
	if err != nil || !served || pid == 0 {
		return nil // no mailbox yet, or nobody to be seen: starting will tell
	}
	if s, err := standing(ctx); err == nil && s.PID == strconv.Itoa(pid) {
		return nil
	}
	return fmt.Errorf("process %d serves %s already; end it first, its agents go on: kill %[1]d", pid, cfg.Root)
}

func install(ctx context.Context, w io.Writer, unit service.Unit, linger bool) error {
	path, err := service.Path()
	if err != nil {
		return err
	}
	err = service.Install(ctx, unit, linger)
	switch {
	case errors.Is(err, service.ErrNoManager):
		return fmt.Errorf("%w; without it, keep this running in a way of your own, such as\n  nohup %s >>mailboxd.log 2>&1 &\nand see the unit with: mailboxd service install --dry-run", err, shellLine(unit))
	case errors.Is(err, service.ErrForeign):
		return fmt.Errorf("%w; if you do not need it: rm %s", err, path)
	case err != nil:
		return fmt.Errorf("%w; see: journalctl --user -u mailboxd", err)
	}
	fmt.Fprintf(w, "wrote   %s\nserving, now and at each login\n", path)
	if !service.Lingers(ctx) {
		fmt.Fprintln(w, "It stops when you log out. If it is to go on: mailboxd service install --linger")
	}
	_, err = fmt.Fprintln(w, "\nIts log: journalctl --user -u mailboxd -f\nHow it stands: mailboxd service status")
	return err
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
			return uninstall(cmd.Context(), cmd.OutOrStdout(), dry)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be removed")
	return cmd
}

func uninstall(ctx context.Context, w io.Writer, dry bool) error {
	path, err := service.Path()
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		_, err := fmt.Fprintln(w, "no service is installed")
		return err
	}
	if dry {
		_, err := fmt.Fprintln(w, "would stop mailboxd.service and remove", path)
		return err
	}
	lingered, err := service.Uninstall(ctx)
	if errors.Is(err, service.ErrForeign) {
		return fmt.Errorf("%w; remove it as it was made", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "removed", path)
	if lingered {
		fmt.Fprintln(w, "your services end at logout again")
	}
	return nil
}
