package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mailboxd/envelope"
)

// OwnDirs are the directories of the daemon, in which no agent works.
type OwnDirs struct {
	Root  string // the mailbox
	State string // its state
}

// Cwd returns the directory of a run: that of the task, with symbolic links resolved, or
// that of the configuration. The findings refuse a task whose directory may not be used.
// The directory can change, so it is checked when the task is judged and again at the start.
func (g *Agent) Cwd(t envelope.Task) (string, envelope.Findings) {
	if err := g.refuseWorktree(t); err != nil {
		return "", refusePlace(envelope.PolicyViolation, envelope.WorktreeKey, err.Error())
	}
	if err := g.refuseContinue(t); err != nil {
		return "", refusePlace(envelope.ContextUnavailable, envelope.ContinueKey, err.Error())
	}
	if err := (rounds{g}).refuse(t); err != nil {
		return "", refusePlace(envelope.ContextUnavailable, envelope.RoundKey, err.Error())
	}
	if t.Workdir() == "" {
		return g.binding.Cwd, nil
	}
	dir, err := g.resolveWorkdir(t.Workdir())
	if missing, ok := errors.AsType[*missingDirError](err); ok {
		return "", refusePlace(envelope.ContextUnavailable, envelope.WorkdirKey, missing.Error())
	}
	if err != nil {
		return "", refusePlace(envelope.PolicyViolation, envelope.WorkdirKey, err.Error())
	}
	return dir, nil
}

func refusePlace(kind envelope.Kind, key, message string) envelope.Findings {
	return envelope.Findings{{Kind: kind, Field: fmt.Sprintf("metadata[%q]", key), Message: message}}
}

// A missingDirError says that a permitted directory cannot be used now.
type missingDirError struct{ message string }

func (e *missingDirError) Error() string { return e.message }

// resolveWorkdir returns a directory without symbolic links, if it lies inside one of
// exec.workdirs. Nothing outside of them is looked up: a sender must not learn what exists
// there.
func (g *Agent) resolveWorkdir(path string) (string, error) {
	if err := g.refuseWorkdirs(); err != nil {
		return "", err
	}
	if !slices.ContainsFunc(g.workdirs, func(dir string) bool { return isInside(filepath.Clean(path), dir) }) {
		return "", errors.New(g.workdirHint(filepath.Clean(path)))
	}
	dir, err := filepath.EvalSymlinks(path)
	if err == nil {
		err = checkDir(dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", &missingDirError{fmt.Sprintf("%s does not exist: make the directory, then send the task again", path)}
	}
	if err != nil {
		return "", &missingDirError{fmt.Sprintf("%s cannot be used: %v", path, err)}
	}
	if !slices.ContainsFunc(g.workdirs, func(allowed string) bool { return isInside(dir, allowed) }) {
		return "", fmt.Errorf("%s leads out of exec.workdirs of agent %q by a symbolic link", path, g.binding.ID)
	}
	return dir, g.opts.Own.check(dir)
}

// refuseWorkdirs says why no task of the agent can have a directory, or nil.
func (g *Agent) refuseWorkdirs() error {
	switch {
	case g.binding.Worker != nil:
		return fmt.Errorf("agent %q is a worker: its processes have one directory for all tasks", g.binding.ID)
	case g.binding.Inbox != nil:
		return fmt.Errorf("agent %q fetches its tasks: it is not run in a directory", g.binding.ID)
	case g.binding.Service != nil:
		return fmt.Errorf("agent %q is a service: it is not run in a directory", g.binding.ID)
	}
	return nil
}

// workdirHint says which line of the configuration would allow a directory.
func (g *Agent) workdirHint(path string) string {
	line := fmt.Sprintf("exec: {workdirs: [%s]}", yamlWord(path))
	if len(g.binding.Workdirs) > 0 {
		line = "- " + yamlWord(path)
		return fmt.Sprintf("%s is not inside exec.workdirs of agent %q: to allow it, add this line to exec.workdirs of the agent and reload: %s", path, g.binding.ID, line)
	}
	return fmt.Sprintf("%s is not allowed for agent %q, which has no exec.workdirs: to allow it, add this to the agent in the configuration and reload: %s", path, g.binding.ID, line)
}

// yamlWord returns a path as it is written in a list of YAML.
func yamlWord(path string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+", r)
	}
	if strings.ContainsFunc(path, func(r rune) bool { return !plain(r) }) {
		return fmt.Sprintf("%q", path)
	}
	return path
}

// check refuses a directory in which an agent would work on the files of the daemon.
func (o OwnDirs) check(dir string) error {
	root, state := resolved(o.Root), resolved(o.State)
	switch {
	case root != "" && isInside(dir, root):
		return fmt.Errorf("%s is part of the mailbox: choose another directory", dir)
	case state != "" && isInside(dir, state):
		return fmt.Errorf("%s is part of the state of mailboxd: choose another directory", dir)
	case state != "" && isInside(state, dir):
		return fmt.Errorf("%s contains the state of mailboxd: choose a directory below it", dir)
	}
	return nil
}

// resolveAll returns directories as they are written, and with symbolic links resolved. The
// links count as they are now: no program can replace a directory by a link later.
func resolveAll(dirs []string) []string {
	var all []string
	for _, dir := range dirs {
		all = append(all, filepath.Clean(dir), resolved(dir))
	}
	return slices.Compact(all)
}

// resolved returns a path without symbolic links; the path itself if it cannot be resolved.
func resolved(path string) string {
	if path == "" {
		return ""
	}
	if dir, err := filepath.EvalSymlinks(path); err == nil {
		return dir
	}
	return filepath.Clean(path)
}

// isInside reports whether a clean path is a directory or lies inside it.
func isInside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

func checkDir(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a directory")
	}
	return err
}

func (b Binding) checkWorkdirs() *FieldError {
	if len(b.Workdirs) > 0 && (b.Worker != nil || b.Inbox != nil) {
		return wrong("exec.workdirs", "only an agent with exec.command can work in the directory of a task")
	}
	for i, dir := range b.Workdirs {
		if !filepath.IsAbs(dir) {
			return wrong(fmt.Sprintf("exec.workdirs[%d]", i), "%q is not an absolute path", dir)
		}
	}
	return nil
}
