package worktree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"
)

// Returned is the work of a run at another machine, which may be anything.
type Returned struct {
	Bundle  Bundle   // what was sent
	Patch   []byte   // empty: no difference
	Digest  string   // SHA-256 of the patch; "" without one
	Skipped []string // see Summary
	Problem string   // why there is no patch, although there may be a difference
	Failed  bool     // the run failed
}

// Adopt makes the record of a run at another machine, as Create and Keep do for one here, without a
// directory. The patch applies to the commit that was sent, or it isn't kept. Adopt may be called again.
func (s Store) Adopt(ctx context.Context, q Request, runDir string, w Returned) (Clone, error) {
	r, err := find(ctx, q.Source)
	if err != nil {
		return Clone{}, err
	}
	c := Clone{
		Run: q.Run, Task: q.Task, Revision: q.Revision, Attempt: q.Attempt, Branch: Branch(q.Task),
		Dir:    filepath.Join(cmp.Or(s.Dir, s.Records), q.Run, cloneName(r.top)),
		Source: r.top, Objects: r.objects, Prefix: r.prefix, Commit: w.Bundle.Commit,
		Uncommitted: w.Bundle.Uncommitted, Omitted: w.Bundle.Omitted, Submodules: w.Bundle.Submodules,
		Created: time.Now(), Removed: time.Now(), // its directory was at the other machine
	}
	work := Work{Problem: w.Problem, Failed: w.Failed}
	if work.Run, err = filepath.Rel(s.Records, runDir); err != nil {
		return Clone{}, err
	}
	if len(w.Patch) > 0 {
		own, remove, err := s.own(ctx, r, r.top)
		if err != nil {
			return Clone{}, err
		}
		defer remove()
		if work.Summary, err = own.examine(ctx, c, w); err != nil {
			return Clone{}, err
		}
		if work.KeptPatch, err = s.keep(filepath.Join(runDir, PatchFile), w.Patch); err != nil {
			return Clone{}, err
		}
	}
	for _, path := range w.Skipped[:min(len(w.Skipped), maxListed)] {
		work.Summary.Skipped = append(work.Summary.Skipped, plain(path))
	}
	c.Work = &work
	return c, s.write(c)
}

// examine returns the summary of a patch, or why it isn't taken. It changes nothing in the source.
func (g git) examine(ctx context.Context, c Clone, w Returned) (sum Summary, err error) {
	if hash := sha256.Sum256(w.Patch); hex.EncodeToString(hash[:]) != w.Digest {
		return sum, fmt.Errorf("take patch of run %s: its SHA-256 is not the one that was announced", c.Run)
	}
	if len(w.Patch) > MaxPatch {
		return sum, &TooLargeError{fmt.Sprintf("the patch is larger than %d MiB", MaxPatch>>20)}
	}
	if _, err := g.run(ctx, nil, "read-tree", c.Commit); err != nil {
		return sum, err
	}
	strict := g.strict()
	if _, err := strict.run(ctx, w.Patch, applyArgs("--cached")...); err != nil {
		return sum, fmt.Errorf("take patch of run %s: it does not apply to %s: %w", c.Run, c.Commit, err)
	}
	if err := strict.checkPatched(ctx, c.Commit, c.Source, nil); err != nil {
		return sum, fmt.Errorf("take patch of run %s: %w", c.Run, err)
	}
	text, err := g.run(ctx, nil, diffArgs(c.Commit, "--numstat", "-z")...)
	if err != nil {
		return sum, err
	}
	return sum, sum.count(text)
}
