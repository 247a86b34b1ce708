package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"mailboxd/internal/stores/dirtree"
)

// PatchFile is the file of a patch in the directory of its run.
const PatchFile = "diff.patch"

// Work is what became of a clone when its run ended.
type Work struct {
	KeptPatch         // without a File if there is no difference
	Run       string  `json:"run_dir,omitempty"` // the directory of the run, from the directory of the records
	Summary   Summary `json:"summary"`
	Problem   string  `json:"problem,omitempty"` // why there is no patch, although there may be a difference
	Failed    bool    `json:"failed,omitempty"`  // the run failed; the next attempt starts afresh
}

// A KeptPatch is a patch in the directory of a run.
type KeptPatch struct {
	File   string `json:"file,omitempty"`   // from the directory of the records; "": none
	Digest string `json:"digest,omitempty"` // SHA-256 of the patch
}

// keep makes a patch durable.
func (s Store) keep(file string, patch []byte) (k KeptPatch, err error) {
	sum := sha256.Sum256(patch)
	k.Digest = hex.EncodeToString(sum[:])
	if k.File, err = filepath.Rel(s.Records, file); err != nil { // a state directory may move
		return k, err
	}
	return k, dirtree.WriteFile(file, patch)
}

// read reads a kept patch; nil for none.
func (s Store) read(k *KeptPatch) ([]byte, error) {
	if k == nil || k.File == "" {
		return nil, nil
	}
	return ReadPatch(filepath.Join(s.Records, k.File), k.Digest)
}

// Keep makes the work of a run durable: the patch in the directory of the run, the summary in
// the record. Only an error of the machine is an error; any other is the Problem of the work,
// and the clone is kept. Keep may be called again.
func (s Store) Keep(ctx context.Context, c Clone, runDir string, failed bool) (Clone, error) {
	d, err := s.Diff(ctx, c)
	if errors.Is(err, ErrReplaced) && c.Work != nil {
		return c, nil
	}
	w := Work{Summary: d.Summary, Failed: failed}
	if err == nil && len(d.Patch) > 0 {
		w.KeptPatch, err = s.keep(filepath.Join(runDir, PatchFile), d.Patch)
	}
	switch {
	case lacks(err):
		return c, fmt.Errorf("keep work of worktree: %w", err)
	case err != nil:
		w = Work{Problem: err.Error(), Failed: failed}
	}
	w.Run, _ = filepath.Rel(s.Records, runDir) // without it, the record goes with the clone
	c.Work = &w
	return c, s.write(c)
}

// lacks reports whether an error is a lack of space, which may pass.
func lacks(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN},
		func(lack error) bool { return errors.Is(err, lack) })
}

// ErrNoPatch says that a run left no work to apply.
var ErrNoPatch = errors.New("the run left no difference")

// Patch returns the kept patch of a clone, exactly as it was when the run ended.
func (s Store) Patch(c Clone) ([]byte, error) {
	switch {
	case c.Work == nil:
		return nil, errors.New("the run has not ended, so its work is not known yet")
	case c.Work.Problem != "":
		return nil, fmt.Errorf("the work of the run was not kept: %s", c.Work.Problem)
	case c.Work.File == "":
		return nil, ErrNoPatch
	}
	return ReadPatch(s.PatchFile(c), c.Work.Digest)
}

// PatchFile returns the file of the patch of a clone; "" if it has none.
func (s Store) PatchFile(c Clone) string {
	if c.Work == nil || c.Work.File == "" {
		return ""
	}
	return filepath.Join(s.Records, c.Work.File)
}

// ReadPatch reads a kept patch, and checks that it is the one with a digest.
func ReadPatch(path, digest string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read patch: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxPatch+1))
	if err != nil {
		return nil, fmt.Errorf("read patch: %w", err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("read patch: %s was changed since the run ended", path)
	}
	return text, nil
}

// Before returns the clone of the attempt before an attempt at a task, if that one left work
// to go on with: it ended, and did not fail.
func (s Store) Before(task string, revision, attempt int) (*Clone, error) {
	if attempt <= 1 {
		return nil, nil
	}
	all, err := s.Clones()
	var last *Clone
	for _, c := range all {
		if c.Task == task && c.Revision == revision && c.Attempt < attempt && (last == nil || c.Attempt > last.Attempt) {
			last = &c
		}
	}
	if last == nil || last.Work == nil || last.Work.Failed || last.Work.File == "" {
		return nil, err
	}
	return last, err
}
