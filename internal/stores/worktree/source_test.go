package worktree_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestWhatChangesInTheSourceBesideACloneIsNamed(t *testing.T) {
	p := newProject(t)
	p.write("notes.txt", "new\n")
	c := p.clone()
	changes := func() []string {
		t.Helper()
		changed, err := p.store.SourceChanges(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	write(t, filepath.Join(c.Dir, "README.md"), "in the clone\n")
	p.write("trace.log", "ignored\n")
	if got := changes(); len(got) > 0 {
		t.Errorf("changes = %q; want none", got)
	}
	p.write("README.md", "in the source\n")
	p.write("notes.txt", "changed again\n")
	if got, want := changes(), []string{"./README.md", "./notes.txt"}; !slices.Equal(got, want) {
		t.Errorf("changes = %q; want %q", got, want)
	}
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "more")
	if got := changes(); !slices.Contains(got, "HEAD") {
		t.Errorf("changes = %q; want HEAD too", got)
	}
	other := p.ended(p.clone())
	other.Applied = time.Now()
	if err := p.store.Update(other); err != nil {
		t.Fatal(err)
	}
	if got := changes(); len(got) > 0 {
		t.Errorf("after an apply, changes = %q; want none, since nobody can tell them apart", got)
	}
}
