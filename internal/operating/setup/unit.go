package setup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/service"
)

// shellLine is the command of a unit for a shell.
func shellLine(u service.Unit) string {
	words := []string{term.ShellWord(u.Program)}
	for _, arg := range u.Args {
		words = append(words, term.ShellWord(arg))
	}
	return strings.Join(words, " ")
}

// UnitFor returns the unit of a configuration. It includes the variables of this
// environment that matter, since a service has another environment.
func UnitFor(ctx context.Context, file, root string, warnings io.Writer) (service.Unit, error) {
	program, err := program()
	if err != nil {
		return service.Unit{}, err
	}
	path, err := service.LoginPath(ctx)
	if err != nil {
		fmt.Fprintf(warnings, "mailboxd: %s; using the PATH of this shell\n", err)
		path = os.Getenv("PATH")
	}
	if file == "" {
		return service.Unit{}, exit.With(exit.Usage, "there is no $HOME with a configuration; name its file with --config")
	}
	if file, err = filepath.Abs(file); err != nil {
		return service.Unit{}, err
	}
	u := service.Unit{
		Program: program, Args: []string{"serve"},
		Env:     append([]string{"PATH=" + path}, relevantVariables(os.Environ())...),
		EnvFile: filepath.Join(filepath.Dir(file), "environment"),
	}
	if _, err := os.Stat(file); err == nil {
		u.Args = append(u.Args, "--config", file)
	}
	if root := cmp.Or(root, os.Getenv("AINL_AGENT_ROOT")); root != "" {
		if root, err = filepath.Abs(root); err != nil {
			return service.Unit{}, err
		}
		u.Args = append(u.Args, "--root", root)
	}
	return u, nil
}

// relevantVariables returns the variables that affect the configuration and the state
// directory.
func relevantVariables(environ []string) (picked []string) {
	for _, e := range environ {
		if strings.HasPrefix(e, "MAILBOXD_") || strings.HasPrefix(e, "XDG_STATE_HOME=") {
			picked = append(picked, e)
		}
	}
	return picked
}

// program returns the path of this program: the one on PATH if it is the same file,
// since an upgrade replaces that one.
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
