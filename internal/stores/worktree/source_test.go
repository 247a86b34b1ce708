package worktree_test

import (
	"os"
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

// Git takes a file of the same size and time for unchanged, unless its index is as old as the file.
func TestAChangeOfTheSameSizeAndTimeIsFound(t *testing.T) {
	p := newProject(t)
	before := time.Now().Add(-time.Hour).Truncate(time.Second)
	set := func(name string) {
		t.Helper()
		if err := os.Chtimes(filepath.Join(p.dir, name), before, before); err != nil {
			t.Fatal(err)
		}
	}
	set("README.md")
	p.git("update-index", "--refresh")
	set(".git/index")
	c := p.clone()
	p.write("README.md", "ONE\nTWO\nTHREE\n")
	set("README.md")
	got, err := p.store.SourceChanges(t.Context(), c)
	if want := []string{"./README.md"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("changes = %q, %v; want %q", got, err, want)
	}
}
