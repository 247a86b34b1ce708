package runnerdaemon

import (
	"slices"
	"time"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
)

// Artifacts that no run needs are looked for at the start, and from then on after each of these times. One that a run
// publishes is not known to be needed before the run's outcome is, so it has to be as old.
const artifactsEvery = time.Hour

// needs notes artifacts that a run needs here: those that its request refers to, and those that it published. They stay
// until the owner has settled it.
func (t *table) needs(one *run, digests ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one.artifacts = append(one.artifacts, digests...)
}

// isNeeded reports whether a run needs an artifact. The caller holds mu.
func (t *table) isNeeded(digest string) bool {
	for _, one := range t.runs {
		if slices.Contains(one.artifacts, digest) {
			return true
		}
	}
	return false
}

// removeArtifacts removes the artifacts that no run needs and that came before a time.
func (d leftFiles) removeArtifacts(before time.Time) {
	for e, err := range d.artifacts.All() {
		if err == nil {
			err = d.removeArtifact(e.Digest, before)
		}
		if err != nil {
			d.Log.Warn().Err(err).Msg("artifact not removed")
		}
	}
	if err := d.artifacts.Sweep(before); err != nil {
		d.Log.Warn().Err(err).Msg("artifacts of an earlier transfer not removed")
	}
}

// removeArtifact removes an artifact unless a run needs it. No run begins to need it meanwhile: one that does later
// fetches it again.
func (d leftFiles) removeArtifact(digest string, before time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isNeeded(digest) {
		return nil
	}
	_, err := d.artifacts.Remove(digest, before, false)
	return err
}

func digestsOf(all []task.Artifact) (digests []string) {
	for _, a := range all {
		digests = append(digests, a.Digest)
	}
	return digests
}

func inputsOf(w fleet.Work) (digests []string) {
	for _, o := range w.Inputs {
		digests = append(digests, o.SHA256)
	}
	return digests
}

// artifactsOf returns the artifacts that the run of a record needs. One whose job or outcome can't be read needs none.
func artifactsOf(r record, j fleet.Job) []string {
	var w fleet.Work
	var said fleet.Outcome
	if r.State == fleet.Ended {
		_ = fleet.DecodeLarge(r.Done, &said)
	} else {
		_ = fleet.DecodeLarge(j.Work, &w)
	}
	return append(inputsOf(w), digestsOf(said.Published)...)
}
