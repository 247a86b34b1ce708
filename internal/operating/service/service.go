package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrNoManager says that no systemd of the user can be reached, as in most
// containers, in WSL without systemd, or after su.
var ErrNoManager = errors.New("no systemd user manager found")

// ErrForeign says that the unit's file was written by somebody else.
var ErrForeign = errors.New("was not written by mailboxd")

// patience is how long systemd may take; a service that does not get ready
// takes the longest.
const patience = 6 * time.Minute

// Path returns where the unit's file belongs.
func Path() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find unit directory: %w", err)
	}
	return filepath.Join(dir, "systemd", "user", Name), nil
}

// Installed returns the text of the unit's file. The error wraps
// fs.ErrNotExist when there is none.
func Installed() (string, error) {
	path, err := Path()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// Install writes the unit, starts its service, now and at each login, and with
// linger lets the user's services go on after logout. A unit of ours that is
// there is replaced, and its service started anew; the error for another's
// wraps ErrForeign. Without a systemd to be reached the error wraps
// ErrNoManager, and nothing is written.
func Install(ctx context.Context, u Unit, linger bool) error {
	if err := Reach(ctx); err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	before, err := Installed()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("install service: %w", err)
	}
	written, lingered := ours(before)
	if before != "" && !written {
		path, _ := Path() // it was found there
		return fmt.Errorf("install service: %s %w", path, ErrForeign)
	}
	u.Lingered = lingered
	if linger && !Lingers(ctx) {
		if _, err := run(ctx, "loginctl", "enable-linger"); err != nil {
			return fmt.Errorf("install service: %w", err)
		}
		u.Lingered = true
	}
	if err := write(u); err != nil {
		return fmt.Errorf("install service: %w", err)
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", Name}, {"restart", Name}} {
		if err := control(ctx, args...); err != nil {
			return fmt.Errorf("install service: %w", err)
		}
	}
	return nil
}

// write puts the unit's file whole.
func write(u Unit) error {
	text, err := u.Text()
	if err != nil {
		return err
	}
	path, err := Path()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	aside, err := os.CreateTemp(filepath.Dir(path), "."+Name+".*") // systemd passes over hidden files
	if err != nil {
		return err
	}
	_, err = aside.WriteString(text)
	err = errors.Join(err, aside.Chmod(0o600), aside.Close()) // a value of its environment may be private
	if err == nil {
		err = os.Rename(aside.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(aside.Name()))
	}
	return nil
}

// Uninstall stops the service and removes its unit. It reports whether it also
// took lingering back, which it does only when Install enabled it. Agents that
// run go on. The error wraps fs.ErrNotExist when there is no unit, and
// ErrForeign when it is another's.
func Uninstall(ctx context.Context) (lingered bool, err error) {
	path, err := Path()
	if err != nil {
		return false, fmt.Errorf("uninstall service: %w", err)
	}
	text, err := Installed()
	if err != nil {
		return false, fmt.Errorf("uninstall service: %w", err)
	}
	written, lingered := ours(text)
	if !written {
		return false, fmt.Errorf("uninstall service: %s %w", path, ErrForeign)
	}
	reached := Reach(ctx) == nil // without one nothing of it can run
	if reached {
		err = control(ctx, "disable", "--now", Name)
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err == nil && reached {
		err = control(ctx, "daemon-reload")
	}
	if err == nil && lingered {
		_, err = run(ctx, "loginctl", "disable-linger")
	}
	if err != nil {
		return false, fmt.Errorf("uninstall service: %w", err)
	}
	return lingered, nil
}

// A Status is how the service stands.
type Status struct {
	Active  string // systemd's word: active, inactive, failed, activating ...
	Enabled bool   // it starts at login
	PID     string // of the daemon; "0" when there is none
}

// Ask asks systemd. The error wraps ErrNoManager where there is none.
func Ask(ctx context.Context) (Status, error) {
	if err := Reach(ctx); err != nil {
		return Status{}, fmt.Errorf("ask for service: %w", err)
	}
	out, err := run(ctx, "systemctl", "--user", "show", Name, "--property=ActiveState,UnitFileState,MainPID")
	if err != nil {
		return Status{}, fmt.Errorf("ask for service: %w", err)
	}
	var s Status
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "ActiveState":
			s.Active = value
		case "UnitFileState":
			s.Enabled = value == "enabled"
		case "MainPID":
			s.PID = value
		}
	}
	return s, nil
}

// Reach reports, as an error that wraps ErrNoManager, that there is no systemd
// of the user to talk to.
func Reach(ctx context.Context) error {
	if _, err := exec.LookPath("systemctl"); err != nil {
		return fmt.Errorf("%w: systemd is not installed", ErrNoManager)
	}
	if _, err := run(ctx, "systemctl", "--user", "show", "--property=Version"); err != nil {
		return fmt.Errorf("%w: %w", ErrNoManager, err)
	}
	return nil
}

func control(ctx context.Context, args ...string) error {
	_, err := run(ctx, "systemctl", append([]string{"--user"}, args...)...)
	return err
}

// run returns what a command prints; its error says what the command complains of.
func run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &complaint, time.Second
	err := cmd.Run()
	if words := strings.TrimSpace(complaint.String()); err != nil && words != "" {
		err = errors.New(words)
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return out.String(), nil
}
