package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/runner"
	"mailboxd/internal/sandbox"
	"mailboxd/internal/task"
)

// gitFile is the file of a run directory with what a sandbox can't make read-only of what git
// obeys in the writable directories of a run: what was absent or a link before the run.
const gitFile = "git-before.json"

// gitObeys are paths below a project. Git reads a configuration from commondir, and runs hooks
// and what a configuration names, also outside of the sandbox.
var gitObeys = []string{".git", ".git/commondir", ".git/config", ".git/hooks"}

// A gitState is what a path is that git obeys. The zero value is a file or a directory.
type gitState struct {
	Absent bool   `json:"absent,omitzero"` // there is none, or it is a link to nothing
	Link   string `json:"link,omitzero"`   // the target of a link
}

func gitStateOf(path string) gitState {
	_, err := os.Stat(path)
	link, _ := os.Readlink(path) // "" for anything else
	return gitState{Absent: errors.Is(err, fs.ErrNotExist), Link: link}
}

// noteGit records what git obeys and is absent or a link.
func noteGit(j task.Job, r sandbox.Run) error {
	before := map[string]gitState{}
	for _, p := range append(r.Write, r.Cwd) {
		for _, name := range gitObeys {
			path := filepath.Join(p.Real, name)
			if state := gitStateOf(path); p.Real != "" && state != (gitState{}) {
				before[path] = state
			}
		}
	}
	if len(before) == 0 {
		return nil
	}
	text, err := json.Marshal(before)
	if err != nil {
		return err
	}
	return create(inDir(j, gitFile), append(text, '\n'))
}

// planted returns what git obeys, and exists or leads elsewhere only since a run.
func planted(dir string) (paths []string) {
	text, err := os.ReadFile(filepath.Join(dir, gitFile))
	var before map[string]gitState
	if err != nil || json.Unmarshal(text, &before) != nil {
		return nil // no sandbox, or none that writes
	}
	made := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(before)) { // a repository comes before what is in it
		now := gitStateOf(path)
		gone := now == gitState{Absent: true}
		if gone || now == before[path] || made[filepath.Dir(path)] || filepath.Base(path) == "hooks" && !hasHooks(path) {
			continue
		}
		made[path] = true
		paths = append(paths, path)
	}
	return paths
}

// hasHooks reports whether a path is anything but a directory of examples.
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
