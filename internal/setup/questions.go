package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mailboxd/internal/agent"
	"mailboxd/internal/exit"
)

// maxTries limits how often a question is asked again.
const maxTries = 3

// askAbout asks a person which of the found programs become agents, where they work, and
// with which tools. A program that needs more than that stays commented out.
func askAbout(found []foundCLI, ask func(question string) (string, error)) ([]foundCLI, error) {
	if len(found) == 0 {
		return nil, nil
	}
	project, err := askProject(ask)
	if err != nil {
		return nil, err
	}
	var wanted []foundCLI
	for _, c := range found {
		if c.inProject && project != "" {
			c.needs = ""
		}
		if c.needs != "" {
			wanted = append(wanted, c)
			continue
		}
		answer, err := ask(fmt.Sprintf("Add the agent %s (%s)? [Y/n] ", c.name, c.path))
		if err != nil {
			return nil, err
		}
		if answer = strings.ToLower(answer); answer == "n" || answer == "no" {
			continue
		}
		c.project = project
		if agent.Profile(c.profile).LimitsTools() {
			answer, err := ask(fmt.Sprintf("Tools of %s, such as Read,Edit,Bash [all that its own settings allow]: ", c.name))
			if err != nil {
				return nil, err
			}
			c.tools = strings.FieldsFunc(answer, func(r rune) bool { return r == ',' || r == ' ' })
		}
		wanted = append(wanted, c)
	}
	return wanted, nil
}

// askProject asks for the directory in which agents work; "" for none.
func askProject(ask func(string) (string, error)) (string, error) {
	standard := repository()
	shown := standard
	if shown == "" {
		shown = "none: an empty directory for each task"
	}
	for range maxTries {
		answer, err := ask(fmt.Sprintf("Directory of the project that agents work in, or - for none [%s]: ", shown))
		if err != nil {
			return "", err
		}
		switch {
		case answer == "":
			return standard, nil
		case answer == "-":
			return "", nil
		}
		dir, err := projectDirectory(answer)
		if err == nil {
			return dir, nil
		}
		shown = fmt.Sprintf("%v; %s", err, shown)
	}
	return "", exit.With(exit.Usage, "no project directory after %d answers", maxTries)
}

// projectDirectory returns the absolute path of an existing directory. A person may type ~/
// here, since no shell reads the answer.
func projectDirectory(answer string) (string, error) {
	if rest, ok := strings.CutPrefix(answer, "~/"); ok || answer == "~" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		answer = filepath.Join(home, strings.TrimPrefix(rest, "~"))
	}
	dir, err := filepath.Abs(answer)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is no directory", dir)
	}
	return dir, nil
}

// repository returns the git repository that the working directory is in; "" for none.
func repository() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, ".git")); missing == nil {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			return ""
		}
		dir = above
	}
	return ""
}
