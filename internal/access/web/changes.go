package web

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/stores/worktree"
)

// changesData is the work of the last run of a task that worked in a clone of a repository.
type changesData struct {
	*client.Worktree
	ID    string // of the element with the files: by content and layout, so that a browser can keep it
	Split bool   // before and after are beside each other
	Kept  bool   // the browser has the files already
	Diffs []fileDiff
	Rest  []client.ChangedFile // files that are named only
	Why   string               // why the page doesn't show all of it
	Apply bool                 // it can be put into the working tree

	Discard bool // it can be discarded

	files  []*gitdiff.File
	unread error // why the patch can't be read
}

// A fileDiff is what the work changes in a file.
type fileDiff struct {
	Name           string
	Words          string // what happens to the file beside its lines
	Added, Deleted int64
	Long           bool // it is folded
	HTML           template.HTML
}

// The limits of what the page shows of a difference. mailboxd diff prints all of it.
const (
	mostPatch     = 4 << 20 // bytes that are read, without those of binary files
	mostDiffLines = 3000    // of all files
	mostOpenLines = 400     // of a file that is not folded
	mostDiffText  = 2000    // characters of a line
)

// A layout says how a browser wants to see a difference.
type layout struct {
	Split bool
	Kept  []string // elements that it keeps
}

// layoutOf reads the layout that a request asks for: diff=split, and the header of the script.
func layoutOf(r *http.Request) layout {
	return layout{r.URL.Query().Get("diff") == "split", strings.Fields(r.Header.Get("Kept"))}
}

// changesOf reads the work of a task; nil for none.
func changesOf(found client.TaskDetails, l layout) *changesData {
	w := found.Worktree()
	if w == nil {
		return nil
	}
	d := &changesData{Worktree: w, Apply: view.CanApply(found), Discard: view.CanDiscard(found)}
	if !w.Ended || w.Problem != "" || w.Patch == "" {
		return d
	}
	if d.ask(l); d.Kept {
		return d
	}
	patch, err := worktree.ReadPatch(w.Patch, w.Digest)
	if err != nil {
		d.Why, d.Apply, d.unread = sentence(err.Error()), false, err
		return d
	}
	d.addPatch(found.Task.ID, patch)
	d.write()
	return d
}

// ask says how the files are wanted.
func (d *changesData) ask(l layout) {
	d.Split, d.ID = l.Split, "changes-"+d.Digest
	if l.Split {
		d.ID += "-split"
	}
	d.Kept = slices.Contains(l.Kept, d.ID)
}

// in returns the changes in another layout.
func (d *changesData) in(l layout) *changesData {
	if d == nil || d.Patch == "" {
		return d
	}
	other := *d
	if other.ask(l); other.Kept {
		other.Diffs, other.Rest, other.Why = nil, nil, ""
	} else {
		other.write()
	}
	return &other
}

func tooLong(id envelope.ID) string {
	return "The rest is too long for this page: " + view.Command("diff", id)
}

// addPatch adds the files of a patch, as many lines as the page shows.
func (d *changesData) addPatch(id envelope.ID, patch []byte) {
	text := withoutBinaries(patch)
	if len(text) > mostPatch {
		text, d.Why = text[:max(0, 1+bytes.LastIndex(text[:mostPatch], []byte("\ndiff --git ")))], tooLong(id)
	}
	files, _, err := gitdiff.Parse(bytes.NewReader(text))
	if err != nil {
		d.Why = fmt.Sprintf("The rest is not shown, since %v: %s", err, view.Command("diff", id))
	}
	left := mostDiffLines
	for _, f := range files {
		one := fileDiff{Name: nameOf(f), Words: changeOf(f)}
		before := left
		for _, part := range f.TextFragments {
			one.Added, one.Deleted = one.Added+part.LinesAdded, one.Deleted+part.LinesDeleted
			if len(part.Lines) > left {
				part.Lines, d.Why = part.Lines[:left], tooLong(id)
			}
			left -= len(part.Lines)
		}
		one.Long = before-left > mostOpenLines
		d.Diffs = append(d.Diffs, one)
	}
	d.files = files
	d.nameRest()
}

// nameRest names the files of the work that aren't shown.
func (d *changesData) nameRest() {
	shown := map[string]bool{}
	for _, f := range d.files {
		shown[nameAfter(f)] = true
	}
	for _, f := range d.Files {
		if !shown[f.Path] {
			d.Rest = append(d.Rest, f)
		}
	}
}

// write writes the lines of the files.
func (d *changesData) write() {
	d.Diffs = slices.Clone(d.Diffs)
	for i, f := range d.files {
		d.Diffs[i].HTML = htmlOf(f, d.Split)
	}
}

// nameOf names a file by its path, and by the one before if it has another.
func nameOf(f *gitdiff.File) string {
	if f.IsRename || f.IsCopy {
		return f.OldName + " -> " + f.NewName
	}
	return nameAfter(f)
}

// nameAfter is the path of a file after the change; before it of one that is gone.
func nameAfter(f *gitdiff.File) string {
	if f.IsDelete {
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
func withoutBinaries(patch []byte) []byte {
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
	return text.Bytes()
}
