package agent

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/gitfiles"
)

// gitFile is the file of a run directory with what git obeyed in the writable directories before
// the run, as far as the agent could change it.
const gitFile = "git-before.json"

// noteGit records what git obeys before a run.
func noteGit(j task.Job, s gitfiles.Snapshot) error {
	if len(s.Roots) == 0 {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return create(inDir(j, gitFile), append(text, '\n'))
}

// readGit returns what git obeyed before a run; nil without a sandbox that writes.
func readGit(dir string) *gitfiles.Snapshot {
	text, err := os.ReadFile(filepath.Join(dir, gitFile))
	before := new(gitfiles.Snapshot)
	if err != nil || json.Unmarshal(text, before) != nil {
		return nil
	}
	return before
}

// reviewGit returns for people what git obeys and did not before.
func reviewGit(before *gitfiles.Snapshot) (reasons []string) {
	if before == nil {
		return nil
	}
	changes, unsearched := before.Changes()
	for i, c := range changes {
		if i == maxGitNamed {
			reasons = append(reasons, fmt.Sprintf("the agent made or changed %d more files that git obeys", len(changes)-i))
			break
		}
		verb := "changed"
		if c.Made {
			verb = "made"
		}
		reasons = append(reasons, fmt.Sprintf("the agent %s %s: read it before you use git there, which may run what it names", verb, c.Path))
	}
	for _, reason := range unsearched {
		reasons = append(reasons, "not all files that git obeys were compared with those before the run: "+reason)
	}
	return reasons
}

// maxGitNamed limits the paths that the review of one result names.
const maxGitNamed = 20

// inspect adds to an outcome what people have to look at, and what the gate of a sandbox refused.
func (g *Agent) inspect(j task.Job, o task.Outcome) task.Outcome {
	if j.Dir == "" || o.Unread != nil || o.Detached || o.Void != nil {
		return o
	}
	for _, reason := range g.reviewSetID(j, o.Exit) {
		o.Result.Review.Ask(short(reason))
	}
	if !g.binding.Sandbox.Active() {
		return o
	}
	for _, reason := range reviewGit(readGit(j.Dir)) {
		o.Result.Review.Ask(short(reason))
	}
	_ = os.RemoveAll(inDir(j, refsName)) // otherwise gc removes it with the run
	o.RefusedHosts = runner.RefusedHosts(j.Dir)
	return o
}
