package doctor

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

	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/setup"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/sandboxing/cgroup"
)

func (d *checker) checkAgents(ctx context.Context) {
	if len(d.Agents) == 0 {
		d.warn("agent", "mailboxd init", "no agent is configured, so every task is rejected")
	}
	var good []agent.Binding
	for _, m := range d.Agents {
		f := Finding{Check: "agent", Subject: m.Binding.ID, State: OK}
		err := m.Problem
		if err == nil {
			good = append(good, m.Binding)
			f.Finding, f.Hint, err = d.program(ctx, m.Binding)
		}
		if err != nil {
			f.State, f.Finding = Bad, err.Error()
		}
		if f.State == Bad && f.Hint == "" {
			f.Hint = "edit " + d.Config
		}
		d.note(f)
		if err == nil {
			d.login(m.Binding)
			d.toolNames(m.Binding)
			d.toolServers(ctx, m.Binding)
		}
		if err == nil && m.Binding.Sandbox.Active() {
			d.sandbox(ctx, m.Binding)
		}
	}
	if _, err := agent.New(good, agent.Options{}); err != nil {
		d.bad("agents", "edit "+d.Config, "%v", err)
	}
}

// login says where the runs of an agent find the login of its program. It asks no provider.
func (d *checker) login(b agent.Binding) {
	state, known := b.Login()
	f := Finding{Check: "login", Subject: b.ID, State: OK, Finding: "found: " + state.Found}
	switch {
	case !known:
		return
	case state.Found == "" && state.Unsure != "":
		f.Finding = "none found; it may need none, by its settings in " + state.Unsure
	case state.Found == "":
		f.State, f.Finding, f.Hint = Warn, "none found, so its tasks may wait for one", state.Remedy
	}
	d.note(f)
}

// toolNames warns of tools that the program of an agent doesn't have.
func (d *checker) toolNames(b agent.Binding) {
	for _, name := range b.Profile.UnknownTools(b.Tools) {
		d.note(Finding{Check: "tools", Subject: b.ID, State: Warn, Finding: b.Profile.UnknownToolText(name), Hint: "edit " + d.Config})
	}
}

// userNamespaces is the setting of AppArmor that forbids user namespaces to programs without
// a profile.
const userNamespaces = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"

// sandbox runs a program in the sandbox of an agent.
func (d *checker) sandbox(ctx context.Context, b agent.Binding) {
	f := Finding{Check: "sandbox", Subject: b.ID, State: OK, Finding: string(b.Sandbox.Profile) + ": a program runs in it"}
	weaker, err := agent.TrySandbox(ctx, b, agent.OwnDirs{Root: d.Root, State: d.State})
	if weaker && err == nil {
		f.State, f.Finding = Warn, string(b.Sandbox.Profile)+": a program runs in the weaker sandbox, since bwrap makes none here"
		f.Hint = "see \"The weaker sandbox\" in docs/sandbox.md"
	}
	if err != nil {
		f.State, f.Finding = Bad, term.OneLine(err.Error())
		f.Hint = "see \"Where the machine refuses\" in docs/sandbox.md"
		if set, _ := os.ReadFile(userNamespaces); strings.TrimSpace(string(set)) == "1" {
			f.Hint = "give bwrap an AppArmor profile with userns: " + f.Hint
		}
		if _, without := errors.AsType[*agent.UnsandboxedError](err); without {
			f.State = Warn
		}
	}
	d.note(f)
}

// cgroup checks whether the daemon can limit the memory and the processes of a run, as the
// sandbox of an agent may want.
func (d *checker) cgroup(context.Context) {
	var needed cgroup.Limits
	for _, m := range d.Agents {
		if s := m.Binding.Sandbox; s.Active() {
			needed.Memory, needed.Processes = max(needed.Memory, s.Memory), max(needed.Processes, s.Processes)
		}
	}
	wanted := needed != cgroup.Limits{}
	if d.pid == 0 {
		if wanted {
			d.warn("cgroup", "start the daemon, then: mailboxd doctor", "an agent has memory or pids in its sandbox; whether a cgroup is delegated shows when the daemon runs")
			return
		}
		d.good("cgroup", "not needed: no agent has memory or pids in its sandbox")
		return
	}
	dir, err := cgroup.Delegated(d.pid)
	if err == nil && wanted {
		err = cgroup.CanLimit(dir, needed)
	}
	switch {
	case err == nil:
		d.good("cgroup", "delegated: %s", dir)
	case wanted:
		d.bad("cgroup", "mailboxd service install", "an agent has memory or pids in its sandbox, so its tasks are refused: %v", err)
	default:
		d.good("cgroup", "not delegated, and not needed: no agent has memory or pids in its sandbox")
	}
}

// program returns the program of an agent, or what is wrong with it and how to repair
// that.
func (d *checker) program(ctx context.Context, b agent.Binding) (found, fix string, err error) {
	if b.Inbox != nil {
		return "fetches its tasks from " + b.Inbox.File, "", nil
	}
	if b.Remote != nil {
		return "runs on runners: see mailboxd runners", "", nil
	}
	if b.Service != nil {
		return d.agentService(ctx, b)
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
		return "", fmt.Sprintf("install %s, or name it in %s as this says: command -v %[1]s", name, d.Config), err
	}
	if cwd := b.Cwd; cwd != "" {
		if info, err := os.Stat(cwd); err != nil || !info.IsDir() {
			return "", "mkdir -p " + term.ShellWord(cwd), fmt.Errorf("its cwd %s is no directory", cwd)
		}
	}
	for _, dir := range b.Workdirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return "", "mkdir -p " + term.ShellWord(dir), fmt.Errorf("%s of its exec.workdirs is not a directory", dir)
		}
	}
	if !slices.Contains(setup.KnownCLIs(), filepath.Base(path)) {
		return path, "", nil
	}
	says, err := versionOf(ctx, path)
	if errors.Is(err, errSlowVersion) {
		return fmt.Sprintf("%s, which %v", path, err), "", nil
	}
	if err != nil {
		return "", term.ShellWord(path) + " --version", fmt.Errorf("%s does not say its version: %w", path, err)
	}
	if tested := agent.UntestedVersion(path, says); tested != "" {
		says += "; mailboxd was tested with " + tested
	}
	return path + ", " + says, "", nil
}

// findOn finds a program on a PATH.
func findOn(path, name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, checkExecutable(name)
	}
	missing := fmt.Errorf("%s is not on the PATH that agents get, %s", name, path)
	for _, dir := range filepath.SplitList(path) {
		if full := filepath.Join(dir, name); filepath.IsAbs(full) && checkExecutable(full) == nil {
			return full, nil
		}
	}
	return "", missing
}

// checkExecutable returns an error unless a file is executable. It wraps
// fs.ErrPermission when only the permission is missing.
func checkExecutable(path string) error {
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

// versionTimeout is the limit of asking a program for its version.
const versionTimeout = 3 * time.Second

// errSlowVersion says nothing against a program: on a busy machine, those that run on Node.js start
// that slowly.
var errSlowVersion = fmt.Errorf("did not say its version within %s", versionTimeout)

// versionOf asks a known program for its version. It wraps errSlowVersion after versionTimeout.
func versionOf(ctx context.Context, path string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, versionTimeout)
	defer stop()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second // for what it left in the background
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", errSlowVersion
	}
	if err != nil {
		return "", err
	}
	line, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	const enough = 100
	return strings.ToValidUTF8(string(line[:min(len(line), enough)]), ""), nil
}
