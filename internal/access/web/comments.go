package web

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
)

// The limits of the comments of a denial.
const (
	mostComments    = 100
	mostCommentText = 4000 // bytes of one
	mostQuote       = 160  // columns of the line that it is about
)

// noteOf returns the note of a decision: the reason in a form, and then its comments on lines of the
// difference. A comment on a line that the difference doesn't have is an error.
func noteOf(r *http.Request, found client.TaskDetails) (string, error) {
	note := strings.TrimSpace(r.PostFormValue("note"))
	places, texts := r.PostForm["at"], r.PostForm["comment"]
	if len(texts) == 0 {
		return note, nil
	}
	w := found.Worktree()
	switch {
	case len(places) != len(texts) || len(texts) > mostComments:
		return "", &client.Error{Kind: client.BadRequest, Message: fmt.Sprintf("the comments of the form are not complete, or more than %d", mostComments)}
	case w == nil || w.Digest != r.PostFormValue("patch"):
		return "", &client.Error{Kind: client.Conflict, Message: "the patch is another one than was shown; look at it again"}
	}
	shown := changesOf(found, layout{})
	for i, text := range texts {
		if text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")); text == "" {
			continue
		}
		line, err := shown.lineAt(places[i])
		if err == nil && len(text) > mostCommentText {
			err = fmt.Errorf("the comment on %s is longer than %d bytes", line, mostCommentText)
		}
		if err != nil {
			return "", &client.Error{Kind: client.BadRequest, Message: err.Error()}
		}
		note += "\n\n" + line + "\n" + term.Indent(text)
	}
	return strings.TrimSpace(note), nil
}

// hasWords reports whether a form has a reason or a comment on a line.
func hasWords(r *http.Request) bool {
	return strings.TrimSpace(r.PostFormValue("note")+strings.Join(r.PostForm["comment"], "")) != ""
}

// lineAt describes a line of the difference by its place: the number of the file as the page shows
// it, from 0, what happens to the line (plus, minus or same), and its number.
func (d *changesData) lineAt(at string) (string, error) {
	unknown := fmt.Errorf("the difference has no line %.40q", at)
	words := strings.Fields(at)
	if len(words) != 3 {
		return "", unknown
	}
	file, err := strconv.Atoi(words[0])
	if err != nil || file < 0 || file >= len(d.files) {
		return "", unknown
	}
	number, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return "", unknown
	}
	for _, part := range d.files[file].TextFragments {
		for _, line := range codeLines(part) {
			class, n, happens := placeOf(line)
			if class == words[1] && n == number {
				return fmt.Sprintf("%s, line %d, %s: %s", nameAfter(d.files[file]), number, happens, term.Cut(line.Text, mostQuote)), nil
			}
		}
	}
	return "", unknown
}

// placeOf returns the class of a line on the page, its number there, and what happens to it.
func placeOf(line *codeLine) (class string, number int64, happens string) {
	switch line.Op {
	case gitdiff.OpAdd:
		return "plus", line.New, "added"
	case gitdiff.OpDelete:
		return "minus", line.Old, "removed"
	}
	return "same", line.New, "unchanged"
}
