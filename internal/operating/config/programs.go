package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// checkPrograms looks for the programs, directories and variables that the configuration
// names. They may come later, such as a directory on the network, so serve starts without
// them.
func (r *reading) checkPrograms() {
	c := &r.config
	if info, err := os.Stat(c.Root); err == nil && !info.IsDir() {
		r.add(Lacks, wrong("root", "%s is a file: name a directory", c.Root))
	}
	for i, dir := range c.Intake.RefRoots {
		if key := fmt.Sprintf("intake.ref_roots[%d]", i); !r.has(key) {
			r.add(Warns, directory(key, dir))
		}
	}
	notify := c.NotifyCommands()
	if !slices.Equal(c.Notify.Waits, DefaultNotice()) {
		key := "notify.waits"
		if c.Notice.Command != nil && r.origins.of(key) == "default" {
			key = "notice.command"
		}
		r.add(Lacks, program(key, notify.Waits))
	}
	r.checkServers()
	r.add(Lacks, program("notify.finished", notify.Finished), program("notify.failed", notify.Failed))
	for _, m := range firstReplicas(c.ReadAgents()) {
		r.add(Lacks, m.lacks()...)
		r.add(Unset, m.unset()...)
	}
}

// lacks returns which programs and directories of an agent are missing.
func (m Agent) lacks() []error {
	part, written, b := "exec", m.Entry.Exec.Command, m.Binding
	command, cwd := b.Command, m.Entry.Exec.Cwd
	if b.Worker != nil {
		part, written, command, cwd = "worker", m.Entry.Worker.Command, b.Worker.Command, m.Entry.Worker.Cwd
	}
	var errs []error
	for i, element := range written {
		if element == "~" || strings.HasPrefix(element, "~/") {
			errs = append(errs, expanded(keyOf(m, fmt.Sprintf("%s.command[%d]", part, i)), element))
		}
	}
	home := errors.Join(errs...)
	if b.Inbox == nil && b.Service == nil && b.Remote == nil && home == nil {
		key := keyOf(m, part+".command")
		if len(written) == 0 {
			key = keyOf(m, "profile")
		}
		errs = append(errs, program(key, command))
	}
	if tilde := expanded(keyOf(m, part+".cwd"), cwd); tilde != nil {
		return append(errs, tilde)
	}
	if len(b.Setup) > 0 {
		errs = append(errs, program(keyOf(m, "exec.worktree.setup.command"), b.Setup))
	}
	for i, dir := range b.Workdirs {
		errs = append(errs, directory(keyOf(m, fmt.Sprintf("exec.workdirs[%d]", i)), dir))
	}
	if b.Inbox == nil && cwd != "" {
		errs = append(errs, directory(keyOf(m, part+".cwd"), b.Cwd))
	}
	return errs
}

// unset returns the variables that an agent shall get and that aren't set.
func (m Agent) unset() (errs []error) {
	part, env := "exec", m.Entry.Exec.Env
	if m.Binding.Worker != nil {
		part, env = "worker", m.Entry.Worker.Env
	}
	if s := m.Binding.Service; s != nil && m.Entry.MCP == nil {
		errs = append(errs, unsetBearer(keyOf(m, s.Section()), s.BearerEnv))
	}
	return append(errs, unsetEnv(env, keyOf(m, part+".env[%d]"), "agent")...)
}

// unsetEnv returns the variables of a list that aren't set. The key has a place for the number.
func unsetEnv(list []string, key, who string) (errs []error) {
	for i, entry := range list {
		if _, set := os.LookupEnv(entry); !set && entry != "" && !strings.Contains(entry, "=") {
			errs = append(errs, wrong(fmt.Sprintf(key, i),
				"%s is not set here, so the %s does not get it: set it where serve runs, or remove it", entry, who))
		}
	}
	return errs
}

// unsetBearer returns an error if the variable with the token of a service isn't set.
func unsetBearer(key, name string) error {
	if _, set := os.LookupEnv(name); set || name == "" {
		return nil
	}
	return wrong(key+".bearer_env", "%s is not set here, so its tasks wait for a login: set it where serve runs", name)
}

// program returns an error unless the program of a command is there. Serve looks for a
// bare name on its own PATH.
func program(key string, command []string) error {
	if len(command) == 0 || command[0] == "" || strings.Contains(command[0], "{{") {
		return nil
	}
	name := command[0]
	hint := ""
	if words := strings.Fields(name); len(words) > 1 {
		hint = fmt.Sprintf("; a command is a list: write [%s]", strings.Join(slices.Collect(quoted(words)), ", "))
	}
	if !strings.Contains(name, "/") {
		if _, err := exec.LookPath(name); err != nil {
			if hint == "" {
				hint = ": install it, or write its whole path, as command -v " + filepath.Base(name) + " prints it"
			}
			return wrong(key, "%s is not on PATH%s", name, hint)
		}
		return nil
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if hint == "" {
			hint = ": install it or correct the path"
		}
		return wrong(key, "%s does not exist%s", name, hint)
	case err != nil:
		return wrong(key, "%v", err)
	case info.IsDir():
		return wrong(key, "%s is a directory: name a program", name)
	case info.Mode().Perm()&0o111 == 0:
		return wrong(key, "%s is not executable: chmod +x %[1]s", name)
	}
	return nil
}

// directory returns an error unless a directory is there.
func directory(key, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wrong(key, "%s does not exist: create it or correct the path", path)
	case err != nil:
		return wrong(key, "%v", err)
	case !info.IsDir():
		return wrong(key, "%s is a file: name a directory", path)
	}
	return nil
}
