package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"mailboxd/internal/operating/service"
	"mailboxd/mailbox"
)

// CheckAlone refuses to start a service while another daemon serves the mailbox.
func CheckAlone(ctx context.Context, root string) error {
	pid, served, err := mailbox.ServedBy(root)
	if err != nil || !served || pid == 0 {
		return nil // a start fails if one serves
	}
	if s, err := ReadServiceStatus(ctx); err == nil && s.PID == strconv.Itoa(pid) {
		return nil
	}
	return fmt.Errorf("process %d serves %s already; end it first, its agents go on: kill %[1]d", pid, root)
}

// Install writes the unit and starts the service.
func Install(ctx context.Context, w io.Writer, unit service.Unit, linger bool) error {
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
	_, err = fmt.Fprintln(w, "\nIts log: journalctl --user -u mailboxd -f\nIts state: mailboxd service status")
	return err
}

// Uninstall stops the service and removes its unit.
func Uninstall(ctx context.Context, w io.Writer, dry bool) error {
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
