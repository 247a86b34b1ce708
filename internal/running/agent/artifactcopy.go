package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/artifact"
)

// artifactsName is the directory of a run with copies of the artifacts of its task.
const artifactsName = "artifacts"

// artifactsDir returns the directory with the artifacts of a run; "" if it has none.
func artifactsDir(j task.Job) string {
	if j.Dir == "" || len(envelope.ArtifactsOf(j.Task.Refs)) == 0 {
		return ""
	}
	return inDir(j, artifactsName)
}

// An artifactError says which artifact a run can't have.
type artifactError struct {
	kind  envelope.Kind
	cause error
}

func (e *artifactError) Error() string { return e.cause.Error() }

// copyArtifacts copies the artifacts of a task into the directory of its run, and compares each
// copy with its digest. If the control refs isn't enforced, the run goes on without those that it
// can't have.
func copyArtifacts(g *Agent, j task.Job) error {
	dir := artifactsDir(j)
	if dir == "" {
		return nil
	}
	if g.opts.Artifacts == nil {
		return &artifactError{envelope.ContextUnavailable, errors.New("this mailbox keeps no artifacts")}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	left := int64(artifact.MaxRun)
	for _, digest := range envelope.ArtifactsOf(j.Task.Refs) {
		e, err := g.opts.Artifacts.CopyTo(digest, filepath.Join(dir, digest), left)
		left -= e.Size
		if err == nil {
			continue
		}
		lacking := &artifactError{envelope.ContextUnavailable, err}
		_, over := errors.AsType[*artifact.LimitError](err)
		switch {
		case errors.Is(err, artifact.ErrChanged):
			lacking.kind = envelope.ContextIntegrity
		case over:
			lacking.kind = envelope.ContextTooLarge
		case isShortage(err):
			return err
		}
		if g.mode(envelope.ControlRefs) == envelope.Enforce {
			return lacking
		}
		if g.opts.Notice != nil {
			g.opts.Notice(g.binding.ID, fmt.Errorf("run %s goes on without a file: %w", j.RunID, lacking))
		}
	}
	return nil
}
