package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/artifact"
)

// A publisher makes artifacts of the files of a run that its answer names.
type publisher struct {
	agent *Agent
	job   task.Job
	bytes int64 // published so far
	done  []task.Artifact
	named map[string]string // the URIs of the files by their names; "": left out
}

// publish publishes the files of the answer in an outcome, and has it name the artifacts. A file
// that can't be published is left out, and a person is asked to review the answer. An error is
// about the machine: the files are still there.
func (p *publisher) publish(o *task.Outcome) error {
	if p.agent.opts.Artifacts == nil || p.job.Dir == "" {
		return nil
	}
	for _, r := range []*envelope.Result{&o.Result, &o.Unanswered} {
		kept, err := p.publishAll(r)
		if err != nil {
			return err
		}
		if r.Artifacts = kept; len(p.named) > 0 {
			dialect.ReplaceFiles(r, p.replacement)
		}
	}
	o.Published = p.done
	return nil
}

// publishAll publishes the files of a result, and returns its references.
func (p *publisher) publishAll(r *envelope.Result) ([]envelope.Ref, error) {
	kept := make([]envelope.Ref, 0, len(r.Artifacts))
	for _, ref := range r.Artifacts {
		name, inRun := "", false
		if !isOwnRef(p.job, ref) {
			name, inRun = p.nameOf(ref.URI)
		}
		if !inRun {
			kept = append(kept, ref)
			continue
		}
		digest, err := p.publishFile(name)
		switch {
		case err == nil:
			p.named[name] = envelope.ArtifactURI(digest)
			kept = append(kept, envelope.Ref{Kind: ref.Kind, URI: p.named[name]})
		case !isRefused(err):
			return nil, fmt.Errorf("publish %q: %w", short(ref.URI), err)
		default:
			p.named[name] = ""
			r.Review.Ask(short(fmt.Sprintf("artifact %q was left out: %s", short(ref.URI), err)))
		}
	}
	return kept, nil
}

// nameOf returns the path of a file relative to the directory that the agent writes, and reports
// whether the file is there. Other files are not of this run.
func (p *publisher) nameOf(uri string) (name string, inRun bool) {
	path, is, err := filePath(uri)
	if !is || err != nil {
		return "", false
	}
	return p.nameOfPath(path)
}

// nameOfPath is nameOf for a path.
func (p *publisher) nameOfPath(path string) (name string, inRun bool) {
	dir := workDir(p.job.Dir)
	if filepath.IsAbs(path) {
		for _, top := range []string{dir, resolved(dir)} {
			if name, below := strings.CutPrefix(filepath.Clean(path), top+"/"); below {
				return name, true
			}
		}
		return "", false
	}
	if !filepath.IsLocal(path) {
		return "", false
	}
	_, err := os.Lstat(filepath.Join(dir, path))
	return path, err == nil
}

// replacement returns the URI of a file that was named by a URI or a path.
func (p *publisher) replacement(ref string) (uri string, replaced bool) {
	name, inRun := p.nameOf(ref)
	if !inRun && !strings.Contains(ref, ":") {
		name, inRun = p.nameOfPath(ref)
	}
	if !inRun {
		return "", false
	}
	uri, replaced = p.named[name]
	return uri, replaced
}

// publishFile publishes a file of the run, and returns its digest.
func (p *publisher) publishFile(name string) (string, error) {
	switch {
	case p.job.Rebooted:
		return "", errRebooted
	case len(p.done) >= artifact.MaxFiles:
		return "", errTooMany
	}
	root, err := os.OpenRoot(workDir(p.job.Dir))
	if err != nil {
		return "", err
	}
	defer root.Close() // nothing was written
	e, err := p.agent.opts.Artifacts.PutFile(root, name, artifact.MaxRun-p.bytes)
	if err != nil {
		return "", err
	}
	p.bytes += e.Size
	p.done = append(p.done, task.Artifact{Digest: e.Digest, Name: name, Size: e.Size, Time: e.Changed})
	return e.Digest, nil
}

// Reasons of a run why a file of it is not published.
var (
	errTooMany  = fmt.Errorf("the run has published %d files already", artifact.MaxFiles)
	errRebooted = errors.New("the machine went down before the file was kept, and may have lost a part of it")
)

// isRefused reports whether a file can't be published because of what it is. Any other error is
// about the machine.
func isRefused(err error) bool {
	_, over := errors.AsType[*artifact.LimitError](err)
	_, unfit := errors.AsType[*artifact.FileError](err)
	return over || unfit && !runner.Passing(err) || errors.Is(err, errTooMany) || errors.Is(err, errRebooted)
}
