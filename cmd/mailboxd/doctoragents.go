package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailboxd/internal/agent"
	"mailboxd/internal/term"
)

func (d *doctor) agents(ctx context.Context) {
	if len(d.cfg.Agents) == 0 {
		d.warn("agent", "mailboxd init", "none is configured, so every task will be refused")
	}
	var good []agent.Binding
	for _, m := range d.cfg.ReadAgents() {
		f := finding{Check: "agent", Subject: m.Binding.ID, State: gradeOK}
		err := m.Problem()
		if err == nil {
			good = append(good, m.Binding)
			f.Finding, f.Mend, err = d.program(ctx, m.Binding)
		}
		if err != nil {
			f.State, f.Finding = gradeBad, err.Error()
		}
		if f.State == gradeBad && f.Mend == "" {
			f.Mend = "edit " + d.config
		}
		d.note(f)
	}
	if _, err := agent.New(good, agent.Options{}); err != nil {
		d.bad("agents", "edit "+d.config, "%v", err)
	}
}

// program says which program an agent is, or what is wrong with it and how
// that is mended.
func (d *doctor) program(ctx context.Context, b agent.Binding) (found, mend string, err error) {
	if b.Inbox != nil {
		return "fetches its tasks from " + b.Inbox.File, "", nil
	}
	command := b.Command
	if b.Worker != nil {
		command = b.Worker.Command
	}
	if len(command) == 0 || command[0] == "" {
		return "", "", errors.New("it has no command")
	}
	path, err := findOn(d.path, command[0])
	if errors.Is(err, fs.ErrPermission) {
		return "", "chmod +x " + term.ShellWord(path), fmt.Errorf("%s is not executable", path)
	}
	if err != nil {
		name := filepath.Base(command[0])
		return "", fmt.Sprintf("install %s, or name it in %s as this says: command -v %[1]s", name, d.config), err
	}
	if cwd := b.Cwd; cwd != "" {
		if info, err := os.Stat(cwd); err != nil || !info.IsDir() {
			return "", "mkdir -p " + term.ShellWord(cwd), fmt.Errorf("its cwd %s is no directory", cwd)
		}
	}
	if !slices.ContainsFunc(clis, func(c cli) bool { return c.name == filepath.Base(path) }) {
		return path, "", nil
	}
	says, err := versionOf(ctx, path)
	if err != nil {
		return "", term.ShellWord(path) + " --version", fmt.Errorf("%s does not say its version: %w", path, err)
	}
	return path + ", " + says, "", nil
}

// findOn finds a program as a daemon with that PATH would.
func findOn(path, name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, mayRun(name)
	}
	missing := fmt.Errorf("%s is not on the PATH that agents get, %s", name, path)
	for _, dir := range filepath.SplitList(path) {
		if full := filepath.Join(dir, name); filepath.IsAbs(full) && mayRun(full) == nil {
			return full, nil
		}
	}
	return "", missing
}

// mayRun returns an error unless we may run the file; one that wraps
// fs.ErrPermission when that is all that is missing.
func mayRun(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	case info.Mode().Perm()&0o111 == 0:
		return fs.ErrPermission
	}
	return nil
}

// versionPatience is how long a program may take to say its version.
const versionPatience = 3 * time.Second

// versionOf asks a program that is known to answer to it for its version.
func versionOf(ctx context.Context, path string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, versionPatience)
	defer stop()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second // for what it left in the background
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("it took longer than %s", versionPatience)
	}
	if err != nil {
		return "", err
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	const enough = 100
	return strings.ToValidUTF8(string(line[:min(len(line), enough)]), ""), nil
}
