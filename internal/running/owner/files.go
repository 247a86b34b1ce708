package owner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/carrier"
	process "mailboxd/internal/running/runner"
	"mailboxd/internal/stores/dirtree"
	"mailboxd/internal/stores/worktree"
)

// files brings the files of runs to their runners and back.
type files struct {
	*Options
	link      func() *carrier.Owner
	malformed func(runner, reason string)
	unsent    unsent
	adopting  sync.Mutex
	hubFaults hubFaults
}

// maxOutcome limits an outcome that comes as an object.
const maxOutcome = 16 << 20

// outcome returns the outcome of a message, with its files in the directory of the run.
func (f *files) outcome(ctx context.Context, one *run, m fleet.Done) (task.Outcome, error) {
	var w fleet.Outcome
	text := []byte(m.Outcome)
	f.tryAgain(one)
	if m.Object != nil {
		one.got = append(one.got, m.Object.Key)
		var b bytes.Buffer
		if m.Object.Size > maxOutcome {
			return f.unreadable(one, fmt.Sprintf("the runner sent an outcome of %d bytes; at most %d are read", m.Object.Size, maxOutcome)), nil
		}
		if err := f.link().Get(ctx, m.Runner, *m.Object, &b); err != nil {
			return task.Outcome{}, err
		}
		text = b.Bytes()
	}
	err := fleet.DecodeLarge(text, &w)
	if err == nil {
		err = w.Check()
	}
	if err != nil {
		f.malformed(m.Runner, "an outcome is malformed: "+err.Error())
		return f.unreadable(one, "the runner sent an outcome that can't be read"), nil
	}
	if w.Void != "" {
		return task.Outcome{Void: errors.New(w.Void)}, nil
	}
	for _, what := range stayed(m.Runner, w) {
		one.leave(what)
	}
	if err := f.fetchAll(ctx, one, m); err != nil {
		return task.Outcome{}, err
	}
	return f.finished(ctx, one, w), nil
}

// stayed says for people what of a run stayed at its runner.
func stayed(runner string, w fleet.Outcome) (all []string) {
	for _, l := range w.Left {
		all = append(all, fmt.Sprintf("%s; at runner %s it is in %s", l.What, runner, l.Path))
	}
	return all
}

// notTaken says for people that a file of a run is too large.
func notTaken(what, runner string, size, most int64) string {
	return fmt.Sprintf("%s of runner %s was not taken: it has %d bytes, and at most %d are taken", what, runner, size, most)
}

// unreadable is the outcome of a run whose runner sent none that can be used.
func (f *files) unreadable(one *run, message string) task.Outcome {
	j := one.job
	j.Dir = ""
	return f.Lost(j, message)
}

// patchName is the file of a patch that isn't checked yet.
const patchName = "patch.new"

// fetchAll puts the files of a run into its directory.
func (f *files) fetchAll(ctx context.Context, one *run, m fleet.Done) error {
	if len(m.Objects) == 0 {
		return nil
	}
	root, err := openDir(one.job.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_ = root.Remove(patchName) // of an outcome that didn't come whole
	for _, object := range m.Objects {
		one.got = append(one.got, object.Key)
		name, what, most := object.Name, "file "+object.Name, f.MaxFile
		switch object.Kind {
		case fleet.ObjectLog:
			name, what = process.StdoutFile, "the output"
		case fleet.ObjectArtifact:
			if topOf(name) == bundleFile {
				continue // the owner's own: it names the repository
			}
			one.files = append(one.files, topOf(name))
		case fleet.ObjectPatch:
			name, what, most = patchName, "the patch", min(most, worktree.MaxPatch)
		default:
			continue
		}
		if object.Size > most {
			one.leave(notTaken(what, m.Runner, object.Size, most))
			continue
		}
		if err := f.fetchFile(ctx, root, m.Runner, object, name); err != nil {
			return err
		}
	}
	return nil
}

// tryAgain removes what came with an earlier outcome of a run, so that outcomes that never come whole can't fill the disk.
func (f *files) tryAgain(one *run) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(one.files))) {
		if err := os.RemoveAll(filepath.Join(one.job.Dir, name)); err != nil {
			f.Log.Warn().Err(err).Str("task_id", string(one.job.Task.ID)).Msg("file of an outcome that did not come whole not removed")
		}
	}
	one.try = try{}
}

// topOf returns the first element of the name of a file.
func topOf(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return top
}

// fetchFile writes a file of a run. Its name was checked, and leads out of the directory by no link.
func (f *files) fetchFile(ctx context.Context, root *os.Root, runner string, object fleet.Object, name string) error {
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	file, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) // a reader may follow it, so it stays the same file
	if err != nil {
		return err
	}
	err = f.link().Get(ctx, runner, object, io.NewOffsetWriter(file, 0))
	if err == nil {
		err = file.Truncate(object.Size)
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// openDir opens the directory of a run, and makes it first.
func openDir(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// finished is the outcome of a run for the engine. Its ids are those of the run, whatever the runner says.
func (f *files) finished(ctx context.Context, one *run, w fleet.Outcome) task.Outcome {
	j := one.job
	out := task.Outcome{
		Result: w.Result, Exit: w.Exit, Retry: w.Retry, Messages: w.Messages, Hold: w.Hold, HoldUntil: w.HoldUntil, HoldShort: w.HoldShort,
		Unanswered: w.Unanswered, RefusedHosts: w.RefusedHosts,
	}
	out.Exit.PID = 0 // of another machine
	if out.Exit.Finished.IsZero() {
		out.Exit.Finished = time.Now()
	}
	if w.Unread != "" {
		return f.unreadable(one, "the answer can't be read at the runner: "+w.Unread)
	}
	for _, r := range []*envelope.Result{&out.Result, &out.Unanswered} {
		if r.Status != "" {
			r.TaskID, r.AgentID = j.Task.ID, j.Task.Agent
			localise(r, j.Dir)
		}
	}
	if out.Result.Status == "" && out.Hold == "" {
		return f.unreadable(one, "the runner sent an outcome without a status")
	}
	f.publish(&out, w, j.Dir)
	f.adopt(ctx, one, &out)
	for _, what := range one.left {
		out.Result.Review.Ask("the result is not all of the run: " + what)
	}
	return out
}

// inRun begins the URI of a file of the run's directory at the runner, and is that of the directory.
const inRun = "run:"

// localise puts this machine's directory of the run in the place of the runner's. Other files of the runner
// aren't here.
func localise(r *envelope.Result, dir string) {
	for i, ref := range r.Artifacts {
		if name, ok := strings.CutPrefix(ref.URI, inRun); ok && (name == "" || fleet.LocalName(name) == nil) {
			r.Artifacts[i].URI = envelope.FileURI(filepath.Join(dir, filepath.FromSlash(name)))
		}
	}
}

// publish keeps the files that a run published as artifacts, if they are what the runner says.
func (f *files) publish(out *task.Outcome, w fleet.Outcome, dir string) {
	if f.Artifacts == nil || len(w.Published) == 0 {
		return
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		out.Result.Review.Ask("the artifacts of the run did not arrive: " + err.Error())
		return
	}
	defer root.Close()
	for _, p := range w.Published {
		err := fleet.LocalName(p.Name)
		if err == nil {
			entry, failed := f.Artifacts.PutFile(root, p.Name, f.MaxFile)
			if err = failed; err == nil && entry.Digest != p.Digest {
				err = fmt.Errorf("its SHA-256 is %.16s, and the runner said %.16s", entry.Digest, p.Digest)
			}
			p.Size, p.Time = entry.Size, time.Now()
		}
		if err != nil {
			out.Result.Review.Ask(fmt.Sprintf("artifact %.200q was left out: %v", p.Name, err))
			continue
		}
		out.Published = append(out.Published, p)
	}
}

// adopt keeps the patch of a run in a worktree. One patch at a time is in memory.
func (f *files) adopt(ctx context.Context, one *run, out *task.Outcome) {
	if one.bundle == nil && f.Worktrees.Records != "" && one.job.Dir != "" {
		one.bundle, one.source = readBundle(one.job.Dir)
	}
	if one.bundle == nil {
		return
	}
	f.adopting.Lock()
	defer f.adopting.Unlock()
	j := one.job
	patch, err := readPatch(j.Dir)
	if err != nil {
		out.Result.Review.Ask(fmt.Sprintf("the difference of the worktree could not be kept: %v", err))
		return
	}
	q := worktree.Request{Run: j.RunID, Task: string(j.Task.ID), Revision: j.Revision, Attempt: j.Attempt, Source: one.source}
	w := worktree.Returned{Bundle: *one.bundle, Patch: patch, Failed: out.Hold == "" && out.Result.Status == envelope.Failed}
	if len(patch) > 0 {
		w.Digest = digestOf(patch)
	} else {
		w.Problem = strings.Join(one.left, "; ")
	}
	c, err := f.Worktrees.Adopt(ctx, q, j.Dir, w)
	_ = os.Remove(filepath.Join(j.Dir, patchName)) // it is kept under another name, or not at all
	if err != nil {
		out.Result.Review.Ask(fmt.Sprintf("the difference of the worktree could not be kept: %v", err))
		return
	}
	if c.Work != nil && c.Work.File != "" {
		out.Patch = c.Work.Digest
		out.Result.Artifacts = append(out.Result.Artifacts, envelope.Ref{Kind: "diff", URI: envelope.FileURI(f.Worktrees.PatchFile(c))})
	}
}

// readPatch returns the patch that came for a run; nil if none did.
func readPatch(dir string) ([]byte, error) {
	file, err := dirtree.OpenRegular(filepath.Join(dir, patchName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, worktree.MaxPatch))
}

// bundleFile has the bundle of a run in its directory, without its commits.
const bundleFile = "bundle.json"

// A sent is what stays known of the commit that a run got.
type sent struct {
	Source string          `json:"source"`
	Bundle worktree.Bundle `json:"bundle"`
}

// readBundle returns the bundle of a run that an earlier daemon sent, and the repository that has its commit.
func readBundle(dir string) (b *worktree.Bundle, source string) {
	text, err := os.ReadFile(filepath.Join(dir, bundleFile))
	var s sent
	if err != nil || json.Unmarshal(text, &s) != nil {
		return nil, ""
	}
	return &s.Bundle, s.Source
}
