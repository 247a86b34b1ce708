package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/ledger"
)

// A task is at least as sensitive as the tasks that published its artifacts (AINL-44): their
// content becomes its own.

// An artifactReader looks up the artifacts of tasks.
type artifactReader struct{ *Reader }

// raise returns a task with at least the sensitivity of its artifacts. One that can't be
// looked up counts as Restricted.
func (ar artifactReader) raise(ctx context.Context, t envelope.Task) envelope.Task {
	if ar.Artifacts == nil {
		return t
	}
	for i, ref := range t.Refs {
		digest, _ := envelope.ArtifactDigest(ref.URI)
		if digest == "" || i >= artifact.MaxFiles {
			continue
		}
		if s, _, err := ar.sensitivity(ctx, digest); err != nil || s > t.Sensitivity {
			t.Sensitivity, t.SensitiveBy = s, fmt.Sprintf("input.refs[%d]", i)
		}
	}
	return t
}

// sensitivity returns the highest sensitivity of the tasks that published an artifact and
// of the person who put it, and whether there is any.
func (ar artifactReader) sensitivity(ctx context.Context, digest string) (highest envelope.Sensitivity, known bool, err error) {
	rows, err := ar.Ledger.Artifacts(ctx, digest)
	if err != nil {
		return envelope.Restricted, false, err
	}
	highest, known = ar.Artifacts.Sensitivity(digest, rows)
	return highest, known, nil
}

// errUnpublished says that no fact about an artifact is known, so that nobody may have it.
var errUnpublished = errors.New("no task published it, and nobody put it with mailboxd artifact put")

// check says why a task can't have an artifact; nil if it can. It doesn't read the file.
func (ar artifactReader) check(ctx context.Context, digest string) error {
	if digest == "" {
		return fmt.Errorf("%w: it is no SHA-256 in 64 lower-case hexadecimal digits", fs.ErrNotExist)
	}
	if ar.Artifacts == nil {
		return fs.ErrNotExist
	}
	if _, known, err := ar.sensitivity(ctx, digest); err != nil || !known {
		return errors.Join(err, errUnpublished)
	}
	_, err := ar.Artifacts.Stat(digest)
	return err
}

// finding returns what is wrong with the artifact that a URI names; the zero value if
// nothing is. It reports whether the URI names one.
func (ar artifactReader) finding(uri, field string, at int) (f envelope.Finding, is bool) {
	digest, is := envelope.ArtifactDigest(uri)
	switch {
	case !is:
		return f, false
	case at >= artifact.MaxFiles:
		f.Kind, f.Message = envelope.ContextTooLarge, fmt.Sprintf("is beyond the %d references that may be artifacts", artifact.MaxFiles)
		f.Field = field
		return f, true
	}
	switch err := ar.check(context.Background(), digest); {
	case err == nil:
		return f, true
	case errors.Is(err, artifact.ErrChanged):
		f.Kind, f.Message = envelope.ContextIntegrity, err.Error()
	default:
		f.Kind, f.Message = envelope.ContextUnavailable, err.Error()
	}
	f.Field = field
	return f, true
}

// Published returns the facts about the artifacts that a run published, with the sensitivity of
// all that went into its task.
func Published(ctx context.Context, rd *Reader, row task.Task, list []task.Artifact) (facts []ledger.Artifact, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	highest, err := rd.SensitivityOf(row.Seq, lookUp(ctx, rd.Ledger))
	for _, a := range list {
		facts = append(facts, ledger.Artifact{
			Digest: a.Digest, Task: row.Seq, Sensitivity: highest, Name: a.Name, Size: a.Size, Time: a.Time,
		})
	}
	return facts, err
}
