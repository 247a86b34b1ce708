package worktree_test

import (
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/stores/worktree"
)

func TestCommittedFilesAreThoseOfHEAD(t *testing.T) {
	p := newProject(t)
	p.write("new.txt", "not committed")
	names := []string{"main.txt", "../README.md", "../new.txt", "missing", "../sub", "../../README.md", "*.txt", ":(glob)x", "."}
	got, err := worktree.Committed(t.Context(), filepath.Join(p.dir, "sub"), "", names)
	if err != nil {
		t.Fatal(err)
	}
	object := strings.TrimSpace(p.git("rev-parse", "HEAD:README.md"))
	if f := got["../README.md"]; len(got) != 2 || f.Object != object || f.Path != "README.md" || f.Executable || got["main.txt"].Path != "sub/main.txt" {
		t.Errorf("the committed files are %+v; want main.txt and ../README.md with %s", got, object)
	}
	if got, err := worktree.Committed(t.Context(), p.dir, "", []string{"../x"}); err != nil || len(got) != 0 {
		t.Errorf("Committed(of a file outside) = %v, %v; want nothing", got, err)
	}
	if _, err := worktree.Committed(t.Context(), t.TempDir(), "", []string{"x"}); err == nil {
		t.Error("Committed(no repository) has no error")
	}
}
