package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mailboxd/internal/config"
	"mailboxd/internal/exit"
	"mailboxd/internal/service"
	"mailboxd/internal/term"
)

// shellLine is the unit's command for a shell.
func shellLine(u service.Unit) string {
	words := []string{term.ShellWord(u.Program)}
	for _, arg := range u.Args {
		words = append(words, term.ShellWord(arg))
	}
	return strings.Join(words, " ")
}

// unitFor is the service of this configuration. What this environment says of
// where things are is written down, because a service has another one.
func unitFor(ctx context.Context, g *globals, complaints io.Writer) (service.Unit, error) {
	if _, err := g.load(); err != nil {
		return service.Unit{}, err // it would fail as a service too
	}
	program, err := program()
	if err != nil {
		return service.Unit{}, err
	}
	path, err := service.LoginPath(ctx)
	if err != nil {
		fmt.Fprintf(complaints, "mailboxd: %s; using the PATH of this shell\n", err)
		path = os.Getenv("PATH")
	}
	file := cmp.Or(g.config, config.DefaultPath())
	if file == "" {
		return service.Unit{}, exit.With(exit.Usage, "there is no $HOME with a configuration; name its file with --config")
	}
	if file, err = filepath.Abs(file); err != nil {
		return service.Unit{}, err
	}
	u := service.Unit{
		Program: program, Args: []string{"serve"},
		Env:     append([]string{"PATH=" + path}, decisive(os.Environ())...),
		EnvFile: filepath.Join(filepath.Dir(file), "environment"),
	}
	if _, err := os.Stat(file); err == nil {
		u.Args = append(u.Args, "--config", file)
	}
	if root := cmp.Or(g.root, os.Getenv("AINL_AGENT_ROOT")); root != "" {
		if root, err = filepath.Abs(root); err != nil {
			return service.Unit{}, err
		}
		u.Args = append(u.Args, "--root", root)
	}
	return u, nil
}

// decisive picks the variables that decide where things are and what the
// configuration says. The root is an argument.
func decisive(environ []string) (picked []string) {
	for _, e := range environ {
		if strings.HasPrefix(e, "MAILBOXD_") || strings.HasPrefix(e, "XDG_STATE_HOME=") {
			picked = append(picked, e)
		}
	}
	return picked
}

// program is the path under which this program will still be there tomorrow:
// the one on PATH, if it is this one, for an upgrade may replace that.
func program() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if strings.Contains(self, "/go-build") {
		return "", fmt.Errorf("%s is gone after this run; install mailboxd first: go install ./cmd/mailboxd", self)
	}
	named, err := exec.LookPath(os.Args[0])
	if err != nil {
		return self, nil
	}
	there, err1 := os.Stat(named)
	here, err2 := os.Stat(self)
	if err1 != nil || err2 != nil || !os.SameFile(there, here) {
		return self, nil
	}
	return filepath.Abs(named)
}
