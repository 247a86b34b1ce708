package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strings"
	"time"
)

// Lingers reports whether the services of the user go on after logout and
// start at boot.
func Lingers(ctx context.Context) bool {
	u, err := user.Current()
	if err != nil {
		return false
	}
	out, err := run(ctx, "loginctl", "show-user", u.Username, "--property=Linger", "--value")
	if err == nil {
		return strings.TrimSpace(out) == "yes"
	}
	_, err = os.Stat("/var/lib/systemd/linger/" + u.Username) // where it is kept
	return err == nil
}

// shellPatience is how long a login shell may take to read its profiles.
const shellPatience = 10 * time.Second

// LoginPath returns the PATH that the user's shell has after a login: what
// profiles make of an empty environment, not what this process inherited.
func LoginPath(ctx context.Context) (string, error) {
	shell := cmp.Or(os.Getenv("SHELL"), "/bin/sh")
	ctx, stop := context.WithTimeout(ctx, shellPatience)
	defer stop()
	cmd := exec.CommandContext(ctx, shell, "-l", "-c", "env") // the one word that every shell has
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "SHELL=" + shell, "TERM=dumb"}
	for _, name := range []string{"HOME", "USER", "LOGNAME", "LANG", "XDG_RUNTIME_DIR"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.WaitDelay = time.Second // for what a profile left in the background
	out, err := cmd.Output()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return "", fmt.Errorf("ask login shell %s for its PATH: %w", shell, err)
	}
	path := ""
	for line := range strings.Lines(string(out)) {
		if value, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "PATH="); ok {
			path = value // the last one: a profile may print things
		}
	}
	if path == "" {
		return "", fmt.Errorf("ask login shell %s for its PATH: it has none", shell)
	}
	return path, nil
}
