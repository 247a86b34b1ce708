package agent

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/testtools/fault"
	"mailboxd/mailbox"
)

// artifacts checks the agent's references and adds those to the run (AINL-67). A named file
// must exist, in the run directory or below a root; otherwise a person is asked to review
// the result.
func (g *Agent) artifacts(j task.Job, r *envelope.Result) {
	roots := append(runRoots(j), g.opts.Roots...)
	kept := make([]envelope.Ref, 0, len(r.Artifacts)+3)
	for _, ref := range r.Artifacts {
		if why := inside(ref.URI, roots); why != "" {
			r.Review.Ask(fmt.Sprintf("artifact %q was left out: %s", short(ref.URI), why))
			continue
		}
		kept = append(kept, ref)
	}
	r.Artifacts = kept
	if j.Dir == "" {
		return
	}
	r.Artifacts = append(kept, ownRefs(j)...)
}

// ownRefs returns the references that mailboxd adds to an answer.
func ownRefs(j task.Job) []envelope.Ref {
	dir := envelope.FileURI(j.Dir)
	refs := []envelope.Ref{{Kind: runTrace, URI: dir}}
	for _, name := range ownFiles {
		if _, err := os.Lstat(inDir(j, name)); err == nil {
			refs = append(refs, envelope.Ref{Kind: name, URI: dir + "/" + name})
		}
	}
	return refs
}

// isOwnRef reports whether a reference may be one that mailboxd added to an answer.
func isOwnRef(j task.Job, ref envelope.Ref) bool {
	file, below := strings.CutPrefix(ref.URI, envelope.FileURI(j.Dir))
	return below && (file == "" && ref.Kind == runTrace || file == "/"+ref.Kind && slices.Contains(ownFiles, ref.Kind))
}

// runTrace is the kind of the reference to the directory of a run. Those to its ownFiles have their
// names as kinds.
const runTrace = "run_trace"

var ownFiles = []string{runner.SetupFile, runner.StdoutFile, runner.StderrFile}

// runRoots returns the directories of a run that may have files of its answer: the one that its
// agent writes comes first.
func runRoots(j task.Job) []string {
	switch {
	case j.Dir == "":
		return nil
	case workDir(j.Dir) != j.Dir:
		return []string{workDir(j.Dir), j.Dir}
	}
	return []string{j.Dir}
}

// checkAttachments applies the rule for files of a task to the files of a CAP answer
// (CAP-16). The run directory is always permitted.
func (g *Agent) checkAttachments(j task.Job, list []envelope.Attachment, r *envelope.Result) {
	if g.opts.CheckRef == nil || g.mode(envelope.ControlRefs) == envelope.Off {
		return
	}
	for i, a := range list {
		if a.Path == "" || j.Dir != "" && inside("file://"+a.Path, runRoots(j)) == "" {
			continue
		}
		err := g.opts.CheckRef("file://" + a.Path)
		if errors.Is(err, mailbox.ErrOutside) || errors.Is(err, mailbox.ErrNotRegular) {
			g.object(r, envelope.ControlRefs, envelope.SecurityViolation, dialect.AttachmentField(a, i)+": "+err.Error())
		}
	}
}

// inside says why a file URI doesn't name a file inside the roots; "" if it does. It
// returns "" for all other URIs, which mailboxd never opens.
func inside(uri string, roots []string) string {
	path, is, err := filePath(uri)
	if err != nil {
		return "it is not a URI"
	}
	if !is {
		return ""
	}
	var failed error
	for _, root := range roots {
		full := path
		if !filepath.IsAbs(path) {
			full = filepath.Join(root, path)
		}
		there, err := within(root, full)
		if there {
			return ""
		}
		if runner.Passing(err) {
			failed = err
		}
	}
	if failed != nil {
		return "it could not be looked up: " + failed.Error()
	}
	return "there is no such file in the run or the mailbox"
}

// filePath returns the path of a file URI. In AINL's file://examples/x, the "host" is the first
// part of a path that is relative to a root (AINL-40).
func filePath(uri string) (path string, is bool, err error) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return "", false, err
	}
	return cmp.Or(u.Host+u.Path, u.Opaque), true, nil
}

// within reports whether a file exists and lies in root after all symbolic links.
func within(root, path string) (bool, error) {
	root, err := filepath.EvalSymlinks(root)
	if err == nil {
		err = fault.Read("artifact")
	}
	if err != nil {
		return false, err
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return false, err
	}
	relative, err := filepath.Rel(root, path)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, "../"), err
}

// provenance sets the program and the run of a result: from the request, or else from the
// agent (AINL-72).
func (g *Agent) provenance(j task.Job, r *envelope.Result) {
	p := &r.Provenance
	p.GraphChecksum = cmp.Or(j.Task.Named("ainl.graph_checksum"), p.GraphChecksum)
	p.ProgramID = cmp.Or(j.Task.Named("ainl.program_id"), p.ProgramID)
	if j.Dir != "" {
		p.RecordingURI = cmp.Or(p.RecordingURI, envelope.FileURI(j.Dir))
	}
	p.RuntimeVersion = cmp.Or(p.RuntimeVersion, "mailboxd/"+cmp.Or(g.opts.Version, "unknown"))
}
