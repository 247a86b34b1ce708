package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/reader"
	"mailboxd/internal/term"
	"mailboxd/internal/view"
)

// changesData is the work of the last run of a task that worked in a clone of a repository.
type changesData struct {
	*client.Worktree
	Diffs []fileDiff
	Why   string // why the page doesn't show all of it
	Apply bool   // mailboxd apply puts it into the working tree
}

// A fileDiff is what the work changes in a file.
type fileDiff struct {
	Name           string
	Words          string // what happens to the file beside its lines
	Added, Deleted int64
	Lines          []diffLine // Sign is also @ for the begin of a part
}

// The limits of what the page shows of a difference. mailboxd diff prints all of it.
const (
	mostPatch     = 4 << 20 // bytes that are read
	mostDiffLines = 3000    // of all files
	mostDiffText  = 2000    // characters of a line
)

// changesOf reads the work of a task; nil for none.
func changesOf(ctx context.Context, r *reader.Reader, found client.TaskDetails) *changesData {
	w := found.Worktree()
	if w == nil {
		return nil
	}
	d := &changesData{Worktree: w, Apply: view.CanApply(found)}
	if !w.Ended || w.Problem != "" || w.Patch == "" {
		return d
	}
	id := found.Task.ID
	patch, err := r.Patch(ctx, id)
	switch {
	case err != nil:
		d.Why, d.Apply = sentence(err.Error()), false
	case len(patch) > mostPatch:
		d.Why = tooLong(id)
	default:
		d.addPatch(id, patch)
	}
	return d
}

func tooLong(id envelope.ID) string {
	return "The rest is too long for this page: " + view.Command("diff", id)
}

// addPatch adds the files of a patch, as many lines as the page shows.
func (d *changesData) addPatch(id envelope.ID, patch []byte) {
	files, _, err := gitdiff.Parse(withoutBinaries(patch))
	if err != nil {
		d.Why = fmt.Sprintf("The rest is not shown, since %v: %s", err, view.Command("diff", id))
	}
	left := mostDiffLines
	for _, f := range files {
		one := fileDiff{Name: nameOf(f), Words: changeOf(f)}
		for _, part := range f.TextFragments {
			one.Added, one.Deleted = one.Added+part.LinesAdded, one.Deleted+part.LinesDeleted
			if len(part.Lines) > left {
				part.Lines, d.Why = part.Lines[:left], tooLong(id)
			}
			if left -= len(part.Lines); len(part.Lines) > 0 {
				one.Lines = append(one.Lines, linesOf(part)...)
			}
		}
		d.Diffs = append(d.Diffs, one)
	}
}

// linesOf returns a part of a difference, below a line that says where it is.
func linesOf(part *gitdiff.TextFragment) []diffLine {
	all := []diffLine{{"@", strings.TrimSpace(fmt.Sprintf("line %d  %s", part.NewPosition, part.Comment))}}
	for _, line := range part.Lines {
		text := strings.TrimSuffix(line.Line, "\n")
		if len(text) == len(line.Line) {
			text += "  (no line end)"
		}
		all = append(all, diffLine{line.Op.String(), term.Cut(text, mostDiffText)})
	}
	return all
}

// nameOf names a file by its path after the change.
func nameOf(f *gitdiff.File) string {
	switch {
	case f.IsRename || f.IsCopy:
		return f.OldName + " -> " + f.NewName
	case f.IsDelete:
		return f.OldName
	}
	return f.NewName
}

// changeOf says what happens to a file beside its lines; "" for nothing.
func changeOf(f *gitdiff.File) string {
	var words []string
	switch {
	case f.IsNew:
		words = append(words, "new")
	case f.IsDelete:
		words = append(words, "deleted")
	case f.IsRename:
		words = append(words, "renamed")
	case f.IsCopy:
		words = append(words, "copied")
	}
	if mode := modeWords(f); mode != "" {
		words = append(words, mode)
	}
	if f.IsBinary {
		words = append(words, "not text")
	}
	return strings.Join(words, ", ")
}

// modeWords says what a file becomes by its new mode; "" for nothing special. The modes are those of git.
func modeWords(f *gitdiff.File) string {
	const kind, link, execute = 0o170000, 0o120000, 0o111
	switch {
	case f.NewMode == 0 || f.NewMode == f.OldMode:
	case f.NewMode&kind == link:
		return "a symbolic link"
	case f.NewMode&execute != 0:
		return "can be executed"
	case f.OldMode&execute != 0:
		return "can't be executed any more"
	}
	return ""
}

// withoutBinaries leaves the content of binary files out of a patch. It may be small there and huge
// when it is unpacked.
func withoutBinaries(patch []byte) io.Reader {
	var text bytes.Buffer
	binary := false
	for line := range bytes.Lines(patch) {
		switch {
		case bytes.Equal(line, []byte("GIT binary patch\n")):
			binary = true
			text.WriteString("Binary files differ\n")
		case binary && !bytes.HasPrefix(line, []byte("diff --git ")):
		default:
			binary = false
			text.Write(line)
		}
	}
	return &text
}
