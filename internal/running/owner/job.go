package owner

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/dirtree"
	"mailboxd/internal/stores/worktree"
)

// jobOf returns the job of a run as it is sent. What is too large for a message is an object.
func (f *files) jobOf(ctx context.Context, one *run, k fleet.Known) (fleet.Job, error) {
	j := one.job
	offered, _ := k.Agent(j.Task.Agent)
	out := fleet.Job{Token: one.token(), Agent: j.Task.Agent, Digest: offered.Digest, Idempotent: one.idempotent, Deadline: j.Deadline}
	w := fleet.Work{
		Request: j.Task.Raw, Task: j.Task, Revision: j.Revision, Attempt: j.Attempt, RunID: j.RunID, Digest: j.Digest, Plan: j.Plan,
		Allowance: j.Allowance, Conversation: j.Conversation, Terms: j.Terms, Asks: j.Ask != nil && j.Calls != nil, Meters: j.Meter != nil,
	}
	var err error
	if f.inWorktree(j) {
		if w.Worktree, err = f.worktreeOf(ctx, one, k); err != nil {
			return out, fmt.Errorf("send the commit of %s to runner %s: %w", j.Task.ID, one.at.Runner, err)
		}
	}
	if w.Inputs, err = f.inputs(ctx, one); err != nil {
		return out, fmt.Errorf("send the artifacts of %s to runner %s: %w", j.Task.ID, one.at.Runner, err)
	}
	text, err := fleet.EncodeLarge(w)
	if err != nil {
		return out, fmt.Errorf("encode the job of %s: %w", j.Task.ID, err)
	}
	if len(text) <= fleet.MaxInline {
		out.Work = text
	} else {
		object, err := f.put(ctx, one, fleet.ObjectWork, "", bytes.NewReader(text))
		if err != nil {
			return out, err
		}
		out.Object = &object
	}
	if !j.Deadline.IsZero() {
		out.Remaining = max(time.Until(j.Deadline), time.Nanosecond)
	}
	return out, nil
}

// inWorktree reports whether the run of a job works in a clone of a repository of this machine.
func (f *files) inWorktree(j task.Job) bool { return f.Worktree(j.Task.Agent) || j.Task.Worktree() }

// hasInputs reports whether a job refers to artifacts.
func (f *files) hasInputs(j task.Job) bool {
	return f.Artifacts != nil && len(envelope.ArtifactsOf(j.Task.Refs)) > 0
}

// tidy removes objects of a run that nobody needs any more. The hub removes what stays after a while.
func (f *files) tidy(ctx context.Context, one *run, keys []string) {
	if len(keys) == 0 {
		return
	}
	if err := f.link().Forget(ctx, one.at.Runner, keys...); err != nil {
		f.Log.Debug().Err(err).Msg("objects of a run not removed")
	}
}

// keyOf returns the key of an object of a run. Inputs have numbers.
func keyOf(j task.Job, kind fleet.ObjectKind, number int) string {
	key := j.At.Token + "-" + string(kind)
	if kind == fleet.ObjectInput {
		key += "-" + strconv.Itoa(number)
	}
	return key
}

// sentKeys returns the keys of all objects that an earlier daemon may have sent for a run.
func sentKeys(j task.Job) []string {
	keys := []string{keyOf(j, fleet.ObjectWork, 0), keyOf(j, fleet.ObjectBundle, 0), keyOf(j, fleet.ObjectPatch, 0)}
	for n := range len(envelope.ArtifactsOf(j.Task.Refs)) + 2 { // after the bundle and the patch
		keys = append(keys, keyOf(j, fleet.ObjectInput, n))
	}
	return keys
}

// put sends bytes to the runner of a run. The name is for inputs.
func (f *files) put(ctx context.Context, one *run, kind fleet.ObjectKind, name string, from io.Reader) (fleet.Object, error) {
	key := keyOf(one.job, kind, len(one.keys))
	one.keys = append(one.keys, key)
	object, err := f.link().Put(ctx, one.at.Runner, kind, key, name, from)
	f.hubFaults.note(one.at.Runner, err)
	return object, err
}

// putFile sends a file in the directory of a run.
func (f *files) putFile(ctx context.Context, one *run, kind fleet.ObjectKind, name, file string) (fleet.Object, error) {
	from, err := dirtree.OpenRegular(filepath.Join(one.job.Dir, file))
	if err != nil {
		return fleet.Object{}, err
	}
	defer from.Close()
	return f.put(ctx, one, kind, name, from)
}

// keepUnsent keeps what was sent for a run whose job wasn't, for the next attempt.
func (f *files) keepUnsent(one *run) {
	for at, object := range one.objects {
		f.unsent.keep(at, object)
		one.keys = slices.DeleteFunc(one.keys, func(key string) bool { return key == object.Key })
	}
}

// takeUnsent returns what an earlier attempt sent.
func (f *files) takeUnsent(one *run, repository, digest string) (object fleet.Object, ok bool) {
	if object, ok = f.unsent.take(objectAt{one.at.Runner, repository, digest}); ok {
		one.keys = append(one.keys, object.Key)
		one.sends(repository, digest, object)
	}
	return object, ok
}

// inputs sends the artifacts that a request refers to. A run that lacks one ends as here, with the reason.
func (f *files) inputs(ctx context.Context, one *run) (all []fleet.Object, err error) {
	if !f.hasInputs(one.job) {
		return nil, nil
	}
	if err := os.MkdirAll(one.job.Dir, 0o700); err != nil {
		return nil, err
	}
	left := int64(artifact.MaxRun)
	for _, digest := range envelope.ArtifactsOf(one.job.Task.Refs) {
		entry, err := f.Artifacts.Stat(digest)
		left -= entry.Size
		var object fleet.Object
		if err == nil && left >= 0 {
			object, err = f.input(ctx, one, digest)
		}
		switch {
		case left < 0, errors.Is(err, fs.ErrNotExist), errors.Is(err, artifact.ErrChanged):
			f.Log.Warn().Err(err).Str("task_id", string(one.job.Task.ID)).Str("artifact", digest).Msg("artifact of a task not sent to its runner")
		case err != nil:
			return nil, err
		default:
			all = append(all, object)
		}
	}
	return all, nil
}

// input sends an artifact, whose bytes are compared with its digest.
func (f *files) input(ctx context.Context, one *run, digest string) (fleet.Object, error) {
	if object, sent := f.takeUnsent(one, "", digest); sent {
		return object, nil
	}
	const file = "input"
	path := filepath.Join(one.job.Dir, file)
	_ = os.Remove(path) // of a daemon that was killed
	if _, err := f.Artifacts.CopyTo(digest, path, artifact.MaxFile); err != nil {
		return fleet.Object{}, err
	}
	defer os.Remove(path)
	object, err := f.putFile(ctx, one, fleet.ObjectInput, digest, file)
	if err == nil && object.SHA256 != digest {
		err = artifact.ErrChanged
	}
	if err == nil {
		one.sends("", digest, object)
	}
	return object, err
}

// earlier returns the clone whose work a run goes on with; nil for none.
func (f *files) earlier(j task.Job) (*worktree.Clone, error) {
	if j.After == "" {
		return f.Worktrees.Before(string(j.Task.ID), j.Revision, j.Attempt)
	}
	c, ok, err := f.Worktrees.Open(j.After)
	if err == nil && !ok {
		err = fmt.Errorf("the worktree of run %s was removed", j.After)
	}
	return &c, err
}

// worktreeOf sends the commit that a run begins with, unless its runner has it, and the earlier work that goes with it.
func (f *files) worktreeOf(ctx context.Context, one *run, k fleet.Known) (*fleet.Worktree, error) {
	if err := os.MkdirAll(one.job.Dir, 0o700); err != nil {
		return nil, err
	}
	const file = "bundle.git"
	path := filepath.Join(one.job.Dir, file)
	defer os.Remove(path)
	after, err := f.earlier(one.job)
	if err != nil {
		return nil, err
	}
	var kept *fleet.Object
	b, err := f.Worktrees.Bundle(ctx, worktree.BundleRequest{
		Source: one.job.Cwd, Base: one.job.Task.Base(), Resolved: one.job.Task.Workdir() != "", File: path, Have: k.Offers.Commits, After: after,
		Sent: func(b worktree.Bundle) bool {
			object, ok := f.takeUnsent(one, b.Repository, b.Commit)
			if ok {
				kept = &object
			}
			return ok
		},
	})
	if err != nil {
		return nil, err
	}
	w := &fleet.Worktree{Repository: b.Repository, Commit: b.Commit, Bundle: kept}
	switch {
	case kept != nil:
		b.Size, b.SHA256 = kept.Size, kept.SHA256
	case b.Size > 0:
		object, err := f.putFile(ctx, one, fleet.ObjectBundle, "", file)
		if err != nil {
			return nil, err
		}
		one.sends(b.Repository, b.Commit, object)
		w.Bundle = &object
	}
	if len(b.Patch) > 0 {
		object, err := f.put(ctx, one, fleet.ObjectPatch, "", bytes.NewReader(b.Patch))
		if err != nil {
			return nil, err
		}
		w.Patch, b.Patch = &object, nil
	}
	return w, f.describe(one, b, w)
}

// describe adds the description of a bundle, and keeps it for a daemon that takes the patch later.
func (f *files) describe(one *run, b worktree.Bundle, w *fleet.Worktree) (err error) {
	one.bundle, one.source = &b, one.job.Cwd
	if w.Detail, err = json.Marshal(b); err != nil {
		return err
	}
	kept, err := json.Marshal(sent{Source: one.source, Bundle: b})
	if err == nil {
		err = writeFile(filepath.Join(one.job.Dir, bundleFile), kept)
	}
	return err
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
