package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mailboxd/internal/cli/exit"
)

// maxTries limits how often a question is asked again.
const maxTries = 3

// askAbout asks a person where the found programs work, what they may do there, and which of them
// become agents. A program that needs more than that stays commented out.
func askAbout(found []foundCLI, standard string, ask func(question string) (string, error)) ([]foundCLI, error) {
	if len(found) == 0 {
		return nil, nil
	}
	project, err := askProject(standard, ask)
	if err != nil {
		return nil, err
	}
	may, err := askAccess(project, ask)
	if err != nil {
		return nil, err
	}
	setAccess(found, project, may)
	var wanted []foundCLI
	for _, c := range found {
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
		wanted = append(wanted, c)
	}
	return wanted, nil
}

// askProject asks for the directory in which agents work; "" for none.
func askProject(standard string, ask func(string) (string, error)) (string, error) {
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

// repositoryOf returns the git repository that a directory is in; "" for none.
func repositoryOf(dir string) string {
	for {
		if isRepository(dir) {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			return ""
		}
		dir = above
	}
}

// isRepository reports whether a directory has a .git that git accepts: a directory with a HEAD, or
// a file that names one. Programs leave empty ones behind, which git ignores.
func isRepository(dir string) bool {
	git := filepath.Join(dir, ".git")
	if _, err := os.Stat(filepath.Join(git, "HEAD")); err == nil {
		return true
	}
	info, err := os.Stat(git)
	return err == nil && info.Mode().IsRegular()
}
