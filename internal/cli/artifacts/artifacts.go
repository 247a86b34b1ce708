// Package artifacts finds, lists, verifies and copies the artifacts of a mailbox for commands.
package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/ledger"
)

// A Mailbox has the artifacts of a mailbox, and the facts about them.
type Mailbox struct {
	Store  *artifact.Store
	Ledger *ledger.Reader
}

// An Artifact is one artifact with all that is known of it.
type Artifact struct {
	URI         string        `json:"uri"`
	Size        int64         `json:"size"`
	Sensitivity string        `json:"sensitivity"` // "" when nothing is known: no task may use it
	Published   []envelope.ID `json:"published"`   // by these tasks
	Named       []envelope.ID `json:"named"`       // by the requests or results of these tasks
	Names       []string      `json:"names"`       // of the files that were published or put
	Time        time.Time     `json:"time"`        // when it was published or put last
}

// Find returns the digest that a person names: a URI, a digest, or the beginning of a digest.
func (m Mailbox) Find(name string) (string, error) {
	begun := strings.TrimPrefix(name, envelope.ArtifactPrefix)
	if envelope.IsDigest(begun) {
		return begun, nil
	}
	var found []string
	for e, err := range m.Store.All() {
		if err == nil && begun != "" && strings.HasPrefix(e.Digest, begun) {
			found = append(found, e.Digest)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", exit.With(exit.Failed, "no artifact %q; see: mailboxd artifact ls", name)
	}
	return "", exit.With(exit.Usage, "%d artifacts begin with %q; write more of the digest", len(found), name)
}

// List returns all artifacts, the latest last.
func (m Mailbox) List(ctx context.Context) (list []Artifact, failed error) {
	for e, err := range m.Store.All() {
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		a, err := m.about(ctx, e)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	slices.SortStableFunc(list, func(a, b Artifact) int { return a.Time.Compare(b.Time) })
	return list, failed
}

// about adds to an artifact what is known of it.
func (m Mailbox) about(ctx context.Context, e artifact.Entry) (Artifact, error) {
	a := Artifact{
		URI: envelope.ArtifactURI(e.Digest), Size: e.Size, Time: e.Changed,
		Published: []envelope.ID{}, Named: []envelope.ID{}, Names: []string{},
	}
	rows, err := m.Ledger.Artifacts(ctx, e.Digest)
	if err != nil {
		return a, err
	}
	if note, noted := m.Store.Note(e.Digest); noted {
		a.Names = append(a.Names, note.Name)
	}
	if highest, known := m.Store.Sensitivity(e.Digest, rows); known {
		a.Sensitivity = highest.String()
	}
	for _, row := range rows {
		if !row.Published {
			if !slices.Contains(a.Published, row.ID) && !slices.Contains(a.Named, row.ID) {
				a.Named = append(a.Named, row.ID)
			}
			continue
		}
		a.Published = append(a.Published, row.ID)
		if !slices.Contains(a.Names, row.Name) {
			a.Names = append(a.Names, row.Name)
		}
	}
	return a, nil
}

// Print prints artifacts as a table, or each as a line of JSON.
func Print(w io.Writer, list []Artifact, asJSON bool) error {
	if asJSON {
		for _, a := range list {
			if err := term.PrintJSON(w, a); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no artifacts")
		return err
	}
	table := &term.Table{Head: []string{"ARTIFACT", "SIZE", "SENSITIVITY", "PUBLISHED BY", "FILE"}, Weights: []int{1, 0, 0, 2, 2}}
	for _, a := range list {
		by := make([]string, len(a.Published))
		for i, id := range a.Published {
			by[i] = string(id)
		}
		cells := []string{
			a.URI, strconv.FormatInt(a.Size, 10), orDash(a.Sensitivity), orDash(strings.Join(by, " ")), orDash(strings.Join(a.Names, " ")),
		}
		row := make([]term.Cell, len(cells))
		for i, text := range cells {
			row[i].Text = term.OneLine(text)
		}
		table.Add(row...)
	}
	return table.Print(term.ScreenOf(w))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Verify reads artifacts, or all without a name, and prints which are not what their names say.
// The error has exit code 1 then.
func (m Mailbox) Verify(w io.Writer, names []string) error {
	var digests []string
	bad := 0
	tell := func(err error) error {
		bad++
		_, failed := fmt.Fprintln(w, term.OneLine(err.Error()))
		return failed
	}
	for _, name := range names {
		digest, err := m.Find(name)
		if err != nil {
			return err
		}
		digests = append(digests, digest)
	}
	if len(names) == 0 {
		for e, err := range m.Store.All() {
			if err == nil {
				digests = append(digests, e.Digest)
			} else if err := tell(err); err != nil {
				return err
			}
		}
	}
	for _, digest := range digests {
		if _, err := m.Store.Verify(digest); err != nil {
			if err := tell(err); err != nil {
				return err
			}
		}
	}
	if bad > 0 {
		return &exit.Error{Code: exit.Failed}
	}
	_, err := fmt.Fprintf(w, "artifacts that are what their names say: %d\n", len(digests))
	return err
}

// Put keeps a file as an artifact of a sensitivity, and returns its URI.
func (m Mailbox) Put(path string, of envelope.Sensitivity) (string, error) {
	e, err := m.Store.PutPath(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, unfit := errors.AsType[*artifact.FileError](err); !unfit {
			err = errors.New("the mailbox has no state directory yet; mailboxd serve makes it")
		}
	}
	if err == nil {
		err = m.Store.SetNote(e.Digest, artifact.Note{Sensitivity: of.String(), Name: filepath.Base(path), Time: e.Changed})
	}
	if err != nil {
		return "", fmt.Errorf("put %s: %w", path, err)
	}
	return envelope.ArtifactURI(e.Digest), nil
}
