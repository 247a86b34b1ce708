package worktree_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/stores/worktree"
)

// createWith makes a clone with copied files.
func (p *project) createWith(names ...string) worktree.Clone {
	p.t.Helper()
	p.runs++
	c, err := p.store.Create(context.Background(), worktree.Request{
		Run: "copy" + string(rune('a'+p.runs)), Task: "t", Revision: 1, Attempt: 1, Source: filepath.Join(p.dir, "sub"), Copy: names,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *project) link(target, name string) {
	p.t.Helper()
	if err := os.Symlink(target, filepath.Join(p.dir, name)); err != nil {
		p.t.Fatal(err)
	}
}

func TestCopiedFilesAreInTheCloneAndNotInThePatch(t *testing.T) {
	p := newProject(t)
	p.write("modules/tool/run.sh", "#!/bin/sh\n")
	p.write("modules/tool/lib.js", "lib\n")
	p.write("conf/local/key", "key\n")
	if err := os.Chmod(filepath.Join(p.dir, "modules/tool/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.link("tool/run.sh", "modules/inside")
	c := p.createWith("modules", "conf/local/", "none")
	info, err := os.Lstat(filepath.Join(c.Dir, "modules/tool/run.sh"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the program is %v, %v; want it with its mode", info, err)
	}
	if target, err := os.Readlink(filepath.Join(c.Dir, "modules/inside")); target != "tool/run.sh" {
		t.Errorf("the link inside is %q, %v", target, err)
	}
	if want := []string{"none: does not exist"}; !slices.Equal(c.NotCopied, want) {
		t.Errorf("not copied: %q, want %q", c.NotCopied, want)
	}
	for name, text := range map[string]string{
		"modules/tool/lib.js": "changed\n", "modules/new": "new\n", "conf/other": "work\n", ".gitignore": "!modules\n",
	} {
		if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(p.dir, "modules/tool/lib.js")); string(text) != "lib\n" {
		t.Errorf("the source has %q, %v after a change in the clone", text, err)
	}
	d, err := p.store.Diff(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range d.Summary.Files {
		paths = append(paths, f.Path)
	}
	if want := []string{".gitignore", "conf/other"}; !slices.Equal(paths, want) {
		t.Errorf("the patch has %q, want %q", paths, want)
	}
}

func TestNothingOutsideOfTheRepositoryIsCopied(t *testing.T) {
	p := newProject(t)
	secret := filepath.Join(filepath.Dir(p.dir), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.write("modules/a", "a\n")
	p.link("../../secret", "modules/out")
	p.link(filepath.Join(p.dir, "modules/a"), "modules/absolute")
	p.link("..", "above")
	p.link("modules", "alias")
	c := p.createWith("modules", "above", "above/secret", "alias/a")
	for _, name := range []string{"modules/out", "modules/absolute", "above", "alias"} {
		if _, err := os.Lstat(filepath.Join(c.Dir, name)); err == nil {
			t.Errorf("%s was copied", name)
		}
	}
	said := strings.Join(c.NotCopied, "\n")
	for _, want := range []string{
		"modules/out: is a link that leads out of the repository", "modules/absolute: is a link", "above: is a link",
		"above/secret: is behind", "alias/a: is behind",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("not copied:\n%s\nwant %s", said, want)
		}
	}
}

func TestWhatGitTracksIsNotCopiedAndStaysWork(t *testing.T) {
	p := newProject(t)
	p.write("sub/main.txt", "not committed\n")
	c := p.createWith("sub")
	if text, _ := os.ReadFile(filepath.Join(c.Dir, "sub/main.txt")); string(text) != "main\n" {
		t.Errorf("the clone has %q, want what is committed", text)
	}
	if want := []string{"sub: git tracks it, so the clone has it as it is committed"}; !slices.Equal(c.NotCopied, want) || len(c.Copied) > 0 {
		t.Errorf("copied %q, not copied %q; want nothing, and %q", c.Copied, c.NotCopied, want)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "sub/new"), []byte("work"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := p.store.Diff(context.Background(), c); err != nil || len(d.Summary.Files) != 1 {
		t.Errorf("the work is %+v, %v; want the new file", d.Summary, err)
	}
}

func TestANameToCopyIsAPathInTheRepository(t *testing.T) {
	for _, name := range []string{"", ".", "..", "../x", "a/../../x", "/etc", ".git", "vendor/.GIT/hooks", "a\x00b"} {
		if worktree.CheckCopy(name) == nil {
			t.Errorf("%q is accepted", name)
		}
	}
	for _, name := range []string{"node_modules", ".env", "a/b/", "./x", ".gitignored"} {
		if err := worktree.CheckCopy(name); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
}
