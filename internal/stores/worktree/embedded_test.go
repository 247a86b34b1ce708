package worktree_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/stores/worktree"
)

// plantBare makes the files of a bare repository whose configuration git obeys.
func plantBare(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/x\n", "config": "[core]\n\tfsmonitor = evil\n", "objects/keep": "", "refs/keep": ""} {
		write(t, filepath.Join(dir, name), text)
	}
}

func TestNamesThatGitRefusesAreLeftOutAndNamed(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	names := []string{".GIT/config", ".git /config", ".git\u200c/config", "git~1/config", "sub/.Git/hooks/pre-commit"}
	for _, name := range append(names, "good.txt") {
		write(t, filepath.Join(c.Dir, name), "x\n")
	}
	if err := os.Symlink("good.txt", filepath.Join(c.Dir, ".gitmodules")); err != nil {
		t.Fatal(err)
	}
	d := p.diff(c)
	slices.Sort(d.Summary.Skipped)
	names = append(names, ".gitmodules")
	slices.Sort(names)
	if !slices.Equal(d.Summary.Skipped, names) || !slices.Equal(paths(d.Summary), []string{"good.txt"}) {
		t.Errorf("skipped %q, patch of %q; want %q and good.txt", d.Summary.Skipped, paths(d.Summary), names)
	}
	p.apply(d)
	if got := p.git("status", "--porcelain"); got != "?? good.txt\n" {
		t.Errorf("the project has %q; want good.txt", got)
	}
}

func TestManyNamesThatGitRefusesAreCounted(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	for n := range 103 {
		write(t, filepath.Join(c.Dir, ".GIT", strings.Repeat("x", n+1)), "x\n")
	}
	d := p.diff(c)
	if len(d.Summary.Skipped) != 101 || d.Summary.Skipped[100] != "3 more names" {
		t.Errorf("skipped %q; want 100 names and their rest", d.Summary.Skipped)
	}
}

func TestRepositoriesAmongTheFilesAreLeftOutAndNamed(t *testing.T) {
	p := newProject(t)
	p.write("fixture/HEAD", "ref: refs/heads/x\n")
	p.write("fixture/objects/keep", "")
	p.write("fixture/refs/keep", "")
	p.write("data/objects/keep", "")
	p.write("data/refs/keep", "")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "fixture")
	c := p.clone()
	plantBare(t, filepath.Join(c.Dir, "new"))
	write(t, filepath.Join(c.Dir, "fixture/config"), "[core]\n\tfsmonitor = evil\n")
	write(t, filepath.Join(c.Dir, "data/HEAD"), "ref: refs/heads/x\n")
	write(t, filepath.Join(c.Dir, "pointer/HEAD"), "ref: refs/heads/x\n")
	write(t, filepath.Join(c.Dir, "pointer/commondir"), "../new\n")
	write(t, filepath.Join(c.Dir, "empty/file"), "x\n")
	gitIn(t, filepath.Join(c.Dir, "empty"), "init", "-q")
	for _, name := range []string{"good/HEAD", "good/refs/x", "parts/head/x", "parts/objects/x", "parts/refs/x"} {
		write(t, filepath.Join(c.Dir, name), "x\n")
	}
	d := p.diff(c)
	slices.Sort(d.Summary.Skipped)
	if want := []string{"data", "empty", "fixture", "new", "pointer"}; !slices.Equal(d.Summary.Skipped, want) || len(d.Summary.Files) != 5 {
		t.Errorf("skipped %q, patch of %q; want %q, and good and parts", d.Summary.Skipped, paths(d.Summary), want)
	}
	p.apply(d)
}

// newFile is the part of a patch that makes a file.
func newFile(name, mode, line string) string {
	return "diff --git a/" + name + " b/" + name + "\nnew file mode " + mode + "\n--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+" + line + "\n"
}

// A patch may be of an earlier version, and the project may have files that the clone had not.
func TestNoPatchPutsARepositoryIntoAProject(t *testing.T) {
	commit := strings.Repeat("1", 40)
	for name, c := range map[string]struct{ patch, want string }{
		"bare":         {newFile("a/HEAD", "100644", "x") + newFile("a/Objects/x", "100644", "x") + newFile("a/refs/x", "100644", "x"), "a would be a repository"},
		"pointer":      {newFile("a/HEAD", "100644", "x") + newFile("a/commondir", "100644", "x"), "a would be a repository"},
		"with ignored": {newFile("ignored/HEAD", "100644", "x"), "ignored would be a repository"},
		"submodule":    {newFile("a", "160000", "Subproject commit "+commit), "a is a submodule"},
		"other name":   {newFile(".GIT/config", "100644", "x"), ".GIT/config"},
		"short name":   {newFile("git~1/config", "100644", "x"), "git~1/config"},
		"invisible":    {newFile(".gi\u200ct/config", "100644", "x"), "invalid path"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.write("ignored/objects/x.log", "")
			p.write("ignored/refs/x.log", "")
			before := p.git("status", "--porcelain", "--ignored")
			err := p.store.Apply(t.Context(), p.dir, nil, []byte(c.patch))
			if conflict, ok := errors.AsType[*worktree.ConflictError](err); !ok || !strings.Contains(conflict.Error(), c.want) {
				t.Errorf("Apply = %v; want a conflict with %q", err, c.want)
			}
			if after := p.git("status", "--porcelain", "--ignored"); after != before {
				t.Errorf("the project changed from %q to %q", before, after)
			}
			if name == "with ignored" {
				return // a branch has no ignored files
			}
			branch := worktree.Commit{Parent: strings.TrimSpace(p.git("rev-parse", "HEAD")), Branch: "b", Time: time.Unix(1e9, 0)}
			if _, err := p.store.FetchBranch(t.Context(), p.dir, []byte(c.patch), branch); err == nil {
				t.Error("FetchBranch made a branch")
			}
		})
	}
}

// A patch may remove a repository that the project has among its files.
func TestARepositoryAmongTheFilesCanBeRemoved(t *testing.T) {
	p := newProject(t)
	plantBare(t, filepath.Join(p.dir, "fixture"))
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "fixture")
	c := p.clone()
	if err := os.Remove(filepath.Join(c.Dir, "fixture/HEAD")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.Dir, "fixture/config"), "x\n")
	d := p.diff(c)
	if d.Summary.Skipped != nil {
		t.Errorf("skipped %q", d.Summary.Skipped)
	}
	p.apply(d)
}
