package web

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/stores/worktree"
)

// A changedError says that a decision is about something else than the page showed, with the
// difference. Nothing was decided.
type changedError struct {
	Task  envelope.ID
	Words string
	Parts []changedPart
}

func (e *changedError) Error() string { return e.Words }

// A changedPart is what changed in one text, such as the patch of a file.
type changedPart struct {
	Name string
	Diff []diffLine
}

// questionChanged adds to the daemon's words about another question what the latest revision changed.
func questionChanged(ctx context.Context, daemon *client.Client, id envelope.ID, err error) error {
	said, ok := errors.AsType[*client.Error](err)
	if !ok || said.Kind != client.Conflict {
		return err
	}
	changed := &changedError{Task: id, Words: sentence(said.Message)}
	found, err := daemon.Details(ctx, id)
	if err != nil || !strings.Contains(said.Message, "; revision: ") {
		return changed
	}
	if all, err := revisionsOf(ctx, daemon, found); err == nil && len(all) > 0 && all[0].Diff != nil {
		changed.Parts = append(changed.Parts, changedPart{"The request", all[0].Diff})
	}
	return changed
}

// workChanged compares the patch of a task with the one that the page showed, file by file.
func workChanged(found client.TaskDetails, shown string) error {
	changed := &changedError{Task: found.Task.ID, Words: "The patch is another one than the page showed."}
	is := found.Worktree()
	if is == nil || is.Patch == "" {
		return changed
	}
	patch, err := worktree.ReadPatch(is.Patch, is.Digest)
	if before := earlierPatch(is.Patch, shown); err == nil && before != nil {
		changed.Parts = comparePatches(sectionsOf(before), sectionsOf(patch))
	}
	return changed
}

// mostEarlier limits the patches of earlier runs among which one is looked up.
const mostEarlier = 100

// earlierPatch returns the patch of an earlier run of a task by its digest: the directories of the
// runs of all its revisions are beside each other. It is nil if that run is gone.
func earlierPatch(now, digest string) []byte {
	all, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(now)), "*", filepath.Base(now)))
	if err != nil {
		return nil
	}
	for _, path := range all[max(0, len(all)-mostEarlier):] {
		if patch, err := worktree.ReadPatch(path, digest); err == nil {
			return patch
		}
	}
	return nil
}

// A section is the part of a patch that is about a file.
type section struct{ name, text string }

// sectionsOf returns the parts of a patch, as far as it isn't too long to compare.
func sectionsOf(patch []byte) (all []section) {
	patch = patch[:min(len(patch), mostPatch)]
	for line := range bytes.Lines(withoutBinaries(patch)) {
		text := string(line)
		if name, begins := strings.CutPrefix(text, "diff --git "); begins {
			all = append(all, section{name: strings.TrimSpace(name)})
		}
		if n := len(all); n > 0 && !strings.HasPrefix(text, "index ") {
			all[n-1].text += text
		}
	}
	return all
}

// comparePatches compares two patches.
func comparePatches(was, is []section) (parts []changedPart) {
	textIn := func(all []section, name string) string {
		at := slices.IndexFunc(all, func(s section) bool { return s.name == name })
		if at < 0 {
			return "(nothing)\n"
		}
		return all[at].text
	}
	for _, s := range is {
		if diff := diffOf(textIn(was, s.name), s.text); diff != nil {
			parts = append(parts, changedPart{s.name, diff})
		}
	}
	for _, s := range was {
		if !slices.ContainsFunc(is, func(other section) bool { return other.name == s.name }) {
			parts = append(parts, changedPart{s.name, diffOf(s.text, "(nothing)\n")})
		}
	}
	return parts
}
