package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/sandboxing/sandbox"
	"mailboxd/internal/stores/worktree"
)

// An access is what coding agents may do in their directory.
type access string

// The kinds of access, as a person answers. The zero value is readOnly's.
const (
	readOnly   access = "1"
	inWorktree access = "2" // they edit a clone of the repository, and a person applies the difference
	inPlace    access = "3"
)

// permission is the permission of the program; "" if its profile has none.
func (c foundCLI) permission() agent.Permission {
	switch {
	case !agent.Profile(c.profile).HasPermissions():
		return ""
	case c.may == inWorktree || c.may == inPlace:
		return agent.Edit
	}
	return agent.ReadOnly
}

// sandboxProfile is the profile of a sandbox that fits the access.
func (c foundCLI) sandboxProfile() sandbox.Profile {
	if c.permission() == agent.ReadOnly {
		return sandbox.ReadOnly
	}
	return sandbox.Workspace
}

// mayWords says what the program may do there.
func (c foundCLI) mayWords() string {
	switch {
	case c.project != "" && c.may == inWorktree:
		return ", edits a copy, which you review before mailboxd apply"
	case c.permission() == agent.ReadOnly:
		return ", reads only"
	case c.may == inPlace && c.permission() == agent.Edit:
		return ", edits in place"
	}
	return ""
}

// gitTimeout limits the time for asking git about a repository.
const gitTimeout = 10 * time.Second

// noWorktree says why agents can't edit in a worktree of a directory; "" if they can.
func noWorktree(project string) string {
	if project == "" || repositoryOf(project) == "" {
		return fmt.Sprintf("%s is in no git repository", project)
	}
	ctx, stop := context.WithTimeout(context.Background(), gitTimeout)
	defer stop()
	err := worktree.CheckSource(ctx, project)
	if broken, ok := errors.AsType[*worktree.RepositoryError](err); ok {
		return fmt.Sprintf("no worktree can be made of %s: %s", project, broken.Reason)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// defaultAccess is what agents may do in a directory if nobody says it: a worktree needs a
// repository with a commit.
func defaultAccess(project string) access {
	if noWorktree(project) == "" {
		return inWorktree
	}
	return readOnly
}

// askAccess asks a person once what all agents may do.
func askAccess(project string, ask func(string) (string, error)) (access, error) {
	if project == "" {
		return defaultAccess(project), nil
	}
	standard, second, missing := inWorktree, "2 edit in a worktree, and you review before apply, ", noWorktree(project)
	if missing != "" {
		standard, second = readOnly, ""
	}
	note := ""
	if missing != "" && repositoryOf(project) != "" {
		note = missing + "; "
	}
	for range maxTries {
		answer, err := ask(fmt.Sprintf("What may agents do there: 1 read only, %sor 3 edit in place? %s[%s] ", second, note, standard))
		if err != nil {
			return "", err
		}
		switch a := access(strings.TrimSpace(answer)); {
		case a == "":
			return standard, nil
		case a == inWorktree && second == "":
			note = missing + "; "
		case a == readOnly || a == inWorktree || a == inPlace:
			return a, nil
		default:
			note = fmt.Sprintf("%q is not one of the numbers; ", a)
		}
	}
	return "", exit.With(exit.Usage, "no answer about what agents may do after %d answers", maxTries)
}

// setAccess sets where the found programs work and what they may do there. A program that can't
// be kept from editing isn't added for reading only.
func setAccess(found []foundCLI, project string, may access) {
	for i := range found {
		found[i].project, found[i].may = project, may
		if !found[i].inProject || project == "" {
			continue
		}
		if may == readOnly {
			found[i].needs = "a directory that it may edit"
			continue
		}
		found[i].needs = ""
	}
}

// worktreeHint says how agents that only read in a repository come to edit in a worktree; "" where
// they edit, or where there is no repository.
func worktreeHint(found []foundCLI, command string) string {
	for _, c := range found {
		if c.needs != "" || c.project == "" || c.may != readOnly || repositoryOf(c.project) == "" {
			continue
		}
		if why := noWorktree(c.project); why != "" {
			return fmt.Sprintf("note    %s; until then agents read only there; afterwards %s proposes a worktree\n", why, command)
		}
	}
	return ""
}

// proposedProject is the directory that agents work in if nobody names one: the repository that
// the working directory is in, or else the working directory. It is "" if the directory has the
// home directory, the configuration or the mailbox in it, which no agent should work on.
func proposedProject(config, root string) string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	if repository := repositoryOf(dir); repository != "" {
		dir = repository
	}
	dir = realPath(dir).Real
	home, _ := os.UserHomeDir() // without one, nothing of it is inside
	for _, own := range []string{home, filepath.Dir(config), root} {
		if own != "" && sandbox.Within(dir, nearestReal(own)) {
			return ""
		}
	}
	return dir
}

// nearestReal resolves the links of a path, of which the last parts may not exist.
func nearestReal(path string) string {
	rest := ""
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
