package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/runner"
	"mailboxd/internal/sandbox"
	"mailboxd/internal/task"
)

// absentFile is the file of a run directory with what git obeys and didn't exist in the
// writable directories of a run before it: a sandbox can't make it read-only.
const absentFile = "git-absent.json"

// gitObeys are paths below a project. Git reads a configuration from commondir, and runs hooks
// and what a configuration names, also outside of the sandbox.
var gitObeys = []string{".git", ".git/commondir", ".git/hooks"}

// noteAbsent records what git obeys and doesn't exist yet.
func noteAbsent(j task.Job, r sandbox.Run) error {
	var absent []string
	for _, p := range append(r.Write, r.Cwd) {
		for _, name := range gitObeys {
			path := filepath.Join(p.Real, name)
			if _, err := os.Lstat(path); p.Real != "" && errors.Is(err, fs.ErrNotExist) {
				absent = append(absent, path)
			}
		}
	}
	if len(absent) == 0 {
		return nil
	}
	text, err := json.Marshal(absent)
	if err != nil {
		return err
	}
	return create(inDir(j, absentFile), append(text, '\n'))
}

// planted returns what git obeys, and exists only since a run.
func planted(dir string) (paths []string) {
	text, err := os.ReadFile(filepath.Join(dir, absentFile))
	var absent []string
	if err != nil || json.Unmarshal(text, &absent) != nil {
		return nil // no sandbox, or none that writes
	}
	made := map[string]bool{}
	for _, path := range absent { // a repository comes before what is in it
		info, err := os.Lstat(path)
		if err != nil || made[filepath.Dir(path)] || info.IsDir() && filepath.Base(path) == "hooks" && !hasHooks(path) {
			continue
		}
		made[path] = true
		paths = append(paths, path)
	}
	return paths
}

// hasHooks reports whether a directory has a file that isn't an example.
func hasHooks(dir string) bool {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".sample") {
			return true
		}
	}
	return err != nil
}

// inspect adds to an outcome what a sandbox let happen, and what its gate refused.
func (g *Agent) inspect(j task.Job, o task.Outcome) task.Outcome {
	if !g.binding.Sandbox.Active() || j.Dir == "" || o.Unread != nil || o.Detached || o.Void != nil {
		return o
	}
	for _, path := range planted(j.Dir) {
		o.Result.Review.Ask(short(fmt.Sprintf("the agent made %s: read it before you use git there, which may run what it names", path)))
	}
	o.RefusedHosts = runner.RefusedHosts(j.Dir)
	return o
}
