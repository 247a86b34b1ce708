package worktree_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/stores/worktree"
)

// A project is a repository of a user, with a store beside it.
type project struct {
	t     *testing.T
	dir   string
	store worktree.Store
	runs  int
}

// newProject makes a repository with a few committed files.
func newProject(t *testing.T) *project {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	top := t.TempDir()
	p := &project{t: t, dir: filepath.Join(top, "project"), store: worktree.Store{Dir: filepath.Join(top, "worktrees"), Records: filepath.Join(top, "records")}}
	p.write("README.md", "one\ntwo\nthree\n")
	p.write("sub/main.txt", "main\n")
	p.write("data.bin", "a\x00b\x00")
	p.write(".gitignore", "*.log\n")
	p.git("init", "-q", "-b", "main")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "start")
	return p
}

// git runs git as the user does, in the project.
func (p *project) git(args ...string) string {
	p.t.Helper()
	return gitIn(p.t, p.dir, args...)
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent",
		"GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@example.com", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@example.com",
		"GIT_ALLOW_PROTOCOL=file")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (p *project) write(name, text string) {
	p.t.Helper()
	write(p.t, filepath.Join(p.dir, name), text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (p *project) clone() worktree.Clone {
	p.t.Helper()
	p.runs++
	c, err := p.store.Create(p.t.Context(), worktree.Request{Run: "run-" + string(rune('a'+p.runs)), Task: "fix-it", Revision: 1, Attempt: 1, Source: p.dir})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *project) diff(c worktree.Clone) worktree.Diff {
	p.t.Helper()
	d, err := p.store.Diff(p.t.Context(), c)
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

func (p *project) apply(d worktree.Diff) {
	p.t.Helper()
	if err := p.store.Apply(p.t.Context(), p.dir, nil, d.Patch); err != nil {
		p.t.Fatalf("Apply: %v\n%s", err, d.Patch)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func paths(s worktree.Summary) (all []string) {
	for _, f := range s.Files {
		all = append(all, f.Path)
	}
	slices.Sort(all)
	return all
}

func TestWorkInACloneReachesTheProjectOnlyByApply(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	write(t, filepath.Join(c.Dir, "README.md"), "one\n2\nthree\n")
	write(t, filepath.Join(c.Dir, "new.txt"), "new\n")
	write(t, filepath.Join(c.Dir, "debug.log"), "ignored\n")
	gitIn(t, c.Dir, "add", "new.txt")
	gitIn(t, c.Dir, "commit", "-q", "-m", "work of the agent")
	d := p.diff(c)
	if got := paths(d.Summary); !slices.Equal(got, []string{"README.md", "new.txt"}) || d.Summary.Added != 2 || d.Summary.Deleted != 1 {
		t.Errorf("summary = %+v; want README.md and new.txt, +2 -1", d.Summary)
	}
	if status := p.git("status", "--porcelain"); status != "" {
		t.Errorf("status before apply = %q; want none", status)
	}
	p.apply(d)
	if got := read(t, filepath.Join(p.dir, "README.md")); got != "one\n2\nthree\n" {
		t.Errorf("README.md = %q", got)
	}
	if status := p.git("status", "--porcelain"); status != " M README.md\n?? new.txt\n" {
		t.Errorf("status after apply = %q; want an untouched index", status)
	}
	if err := p.store.Apply(t.Context(), p.dir, nil, d.Patch); !errors.Is(err, worktree.ErrApplied) {
		t.Errorf("second Apply = %v; want ErrApplied", err)
	}
}

func TestTwoClonesDoNotSeeEachOther(t *testing.T) {
	p := newProject(t)
	a, b := p.clone(), p.clone()
	write(t, filepath.Join(a.Dir, "README.md"), "a\n")
	write(t, filepath.Join(b.Dir, "sub/main.txt"), "b\n")
	if got := paths(p.diff(a).Summary); !slices.Equal(got, []string{"README.md"}) {
		t.Errorf("diff of a = %v", got)
	}
	if got := paths(p.diff(b).Summary); !slices.Equal(got, []string{"sub/main.txt"}) {
		t.Errorf("diff of b = %v", got)
	}
}

func TestEveryKindOfChangeSurvivesTheWay(t *testing.T) {
	p := newProject(t)
	p.write("gone.txt", "gone\n")
	p.write("moved.txt", strings.Repeat("a line that moves\n", 20))
	p.write("script.sh", "#!/bin/sh\n")
	p.write("dir/file", "in a directory\n")
	p.write("flat", "a file\n")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "more")
	c := p.clone()
	in := func(name string) string { return filepath.Join(c.Dir, name) }
	odd := "odd \"quoted\"\nname\t\\ ü"
	write(t, in(odd), "odd\n")
	write(t, in("data.bin"), "a\x00c\x00\xff")
	write(t, in("empty"), "")
	write(t, in("not \xff UTF-8"), "x\n")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(os.Remove(in("gone.txt")))
	do(os.Rename(in("moved.txt"), in("renamed.txt")))
	do(os.Chmod(in("script.sh"), 0o755))
	do(os.RemoveAll(in("dir")))
	write(t, in("dir"), "now a file\n")
	do(os.Remove(in("flat")))
	write(t, in("flat/inside"), "now a directory\n")
	do(os.Symlink("/etc/passwd", in("link")))
	d := p.diff(c)
	p.apply(d)
	for name, want := range map[string]string{odd: "odd\n", "data.bin": "a\x00c\x00\xff", "empty": "", "dir": "now a file\n", "flat/inside": "now a directory\n", "renamed.txt": strings.Repeat("a line that moves\n", 20)} {
		if got := read(t, filepath.Join(p.dir, name)); got != want {
			t.Errorf("%q = %q; want %q", name, got, want)
		}
	}
	for _, name := range []string{"gone.txt", "moved.txt"} {
		if _, err := os.Lstat(filepath.Join(p.dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	if info, err := os.Stat(filepath.Join(p.dir, "script.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("script.sh is not executable: %v", err)
	}
	if to, err := os.Readlink(filepath.Join(p.dir, "link")); err != nil || to != "/etc/passwd" {
		t.Errorf("link = %q, %v; want a link to /etc/passwd", to, err)
	}
	if again := p.clone(); !bytes.Equal(p.diff(again).Patch, nil) {
		t.Error("a fresh clone has a difference")
	}
}

func TestLinksAreNeverFollowed(t *testing.T) {
	p := newProject(t)
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, filepath.Join(outside, "main.txt"), "secret\n")
	c := p.clone()
	if err := os.RemoveAll(filepath.Join(c.Dir, "sub")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(c.Dir, "sub")); err != nil {
		t.Fatal(err)
	}
	d := p.diff(c)
	if bytes.Contains(d.Patch, []byte("secret")) {
		t.Errorf("the patch has a file behind a link:\n%s", d.Patch)
	}
	patch := []byte("diff --git a/sub/new b/sub/new\nnew file mode 100644\n--- /dev/null\n+++ b/sub/new\n@@ -0,0 +1 @@\n+x\n")
	p.apply(d) // the project has the link now
	if err := p.store.Apply(t.Context(), p.dir, nil, patch); err == nil {
		t.Error("a patch was applied behind a link")
	}
	for _, name := range []string{"../escape", ".git/hooks/post-commit", "/tmp/escape-of-mailboxd"} {
		patch := []byte("diff --git a/" + name + " b/" + name + "\nnew file mode 100755\n--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+x\n")
		if err := p.store.Apply(t.Context(), p.dir, nil, patch); err == nil {
			t.Errorf("a patch of %s was applied", name)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside has %v, %v", left, err)
	}
}

func TestACloneReplacedByALinkIsNotRead(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	home := t.TempDir()
	write(t, filepath.Join(home, "id_rsa"), "secret\n")
	if err := os.Rename(c.Dir, c.Dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home, c.Dir); err != nil {
		t.Fatal(err)
	}
	if d, err := p.store.Diff(t.Context(), c); !errors.Is(err, worktree.ErrReplaced) {
		t.Errorf("Diff = %s, %v; want ErrReplaced", d.Patch, err)
	}
}

func TestSpecialFilesAreLeftOut(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	if err := os.Remove(filepath.Join(c.Dir, "README.md")); err != nil {
		t.Fatal(err)
	}
	mkfifo(t, filepath.Join(c.Dir, "README.md"))
	mkfifo(t, filepath.Join(c.Dir, "pipe"))
	if got := paths(p.diff(c).Summary); !slices.Equal(got, []string{"README.md"}) {
		t.Errorf("diff = %v; want README.md as removed", got)
	}
}

func TestNestedRepositoriesAndSubmodulesAreNamed(t *testing.T) {
	p := newProject(t)
	library := newProject(t)
	p.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", library.dir, "library")
	p.git("commit", "-q", "-m", "submodule")
	c := p.clone()
	if !slices.Equal(c.Submodules, []string{"library"}) {
		t.Errorf("submodules = %v; want library", c.Submodules)
	}
	nested := filepath.Join(c.Dir, "nested")
	write(t, filepath.Join(nested, "file"), "x\n")
	gitIn(t, nested, "init", "-q")
	gitIn(t, nested, "add", "-A")
	gitIn(t, nested, "commit", "-q", "-m", "nested")
	d := p.diff(c)
	if !slices.Equal(d.Summary.Skipped, []string{"nested"}) || len(d.Patch) > 0 {
		t.Errorf("skipped = %v, patch %q; want nested and no patch", d.Summary.Skipped, d.Patch)
	}
}

func TestUncommittedFilesAreListed(t *testing.T) {
	p := newProject(t)
	p.write("README.md", "changed\n")
	p.write("untracked.txt", "x\n")
	p.write("staged.txt", "x\n")
	p.git("add", "staged.txt")
	p.write("trace.log", "ignored\n")
	c := p.clone()
	slices.Sort(c.Uncommitted)
	if want := []string{"README.md", "staged.txt", "untracked.txt"}; !slices.Equal(c.Uncommitted, want) {
		t.Errorf("uncommitted = %v; want %v", c.Uncommitted, want)
	}
	if got := read(t, filepath.Join(c.Dir, "README.md")); got != "one\ntwo\nthree\n" {
		t.Errorf("README.md in the clone = %q; want the committed one", got)
	}
}

func TestApplyRefusesFilesWithUncommittedChanges(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	write(t, filepath.Join(c.Dir, "README.md"), "one\ntwo\nthree\nfour\n")
	write(t, filepath.Join(c.Dir, "new.txt"), "new\n")
	d := p.diff(c)
	p.write("README.md", "zero\none\ntwo\nthree\n")
	err := p.store.Apply(t.Context(), p.dir, nil, d.Patch)
	conflict, ok := errors.AsType[*worktree.ConflictError](err)
	if !ok || !strings.Contains(conflict.Error(), "README.md has changes that are not committed") {
		t.Errorf("Apply = %v; want a conflict in README.md", err)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "new.txt")); err == nil {
		t.Error("a part of the patch was applied")
	}
	p.write("other.txt", "of the user\n")
	p.git("checkout", "-q", "README.md")
	p.write("sub/main.txt", "dirty, but not of the patch\n")
	p.apply(d)
}

func TestApplyWorksOnANewerHead(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	write(t, filepath.Join(c.Dir, "README.md"), "one\ntwo\nthree\nfour\n")
	d := p.diff(c)
	p.write("later.txt", "x\n")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "later")
	p.apply(d)
}

func TestFetchBranchLeavesTheWorkingTreeAlone(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	write(t, filepath.Join(c.Dir, "README.md"), "by the agent\n")
	d := p.diff(c)
	commit := worktree.Commit{Parent: c.Commit, Branch: c.Branch, Message: "fix it\n", Author: "claude", Time: time.Unix(1e9, 0)}
	hash, err := p.store.FetchBranch(t.Context(), p.dir, d.Patch, commit)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.store.FetchBranch(t.Context(), p.dir, d.Patch, commit); err != nil || again != hash {
		t.Errorf("second FetchBranch = %s, %v; want %s", again, err, hash)
	}
	if got := p.git("show", "mailboxd/fix-it:README.md"); got != "by the agent\n" {
		t.Errorf("README.md of the branch = %q", got)
	}
	if status := p.git("status", "--porcelain"); status != "" {
		t.Errorf("status = %q; want none", status)
	}
	p.git("fsck", "--strict")
	commit.Message = "another\n"
	if _, err := p.store.FetchBranch(t.Context(), p.dir, d.Patch, commit); !errors.Is(err, worktree.ErrBranchExists) {
		t.Errorf("FetchBranch over another branch = %v; want ErrBranchExists", err)
	}
}

func TestSubdirectoriesAndLinkedWorktreesAreSources(t *testing.T) {
	p := newProject(t)
	linked := filepath.Join(t.TempDir(), "linked")
	p.git("worktree", "add", "-q", "-b", "side", linked)
	write(t, filepath.Join(linked, "side.txt"), "side\n")
	gitIn(t, linked, "add", "-A")
	gitIn(t, linked, "commit", "-q", "-m", "side")
	c, err := p.store.Create(t.Context(), worktree.Request{Run: "r1", Task: "t", Source: filepath.Join(linked, "sub")})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(c.Cwd(), "../side.txt")); got != "side\n" || c.Prefix != "sub/" {
		t.Errorf("side.txt = %q below %q", got, c.Prefix)
	}
	write(t, filepath.Join(c.Cwd(), "main.txt"), "changed\n")
	d := p.diff(c)
	if err := p.store.Apply(t.Context(), c.Source, nil, d.Patch); err != nil {
		t.Fatal(err)
	}
	if got := gitIn(t, linked, "status", "--porcelain"); got != " M sub/main.txt\n" {
		t.Errorf("status = %q", got)
	}
}

func TestShallowRepositoriesAreSources(t *testing.T) {
	p := newProject(t)
	p.write("second.txt", "x\n")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "second")
	shallow := filepath.Join(t.TempDir(), "shallow")
	gitIn(t, t.TempDir(), "clone", "-q", "--depth=1", "file://"+p.dir, shallow)
	c, err := p.store.Create(t.Context(), worktree.Request{Run: "r1", Task: "t", Source: shallow})
	if err != nil {
		t.Fatal(err)
	}
	gitIn(t, c.Dir, "log")
	write(t, filepath.Join(c.Dir, "second.txt"), "y\n")
	if _, err := p.store.FetchBranch(t.Context(), shallow, p.diff(c).Patch, worktree.Commit{Parent: c.Commit, Branch: c.Branch, Time: time.Unix(1e9, 0)}); err != nil {
		t.Error(err)
	}
}

func TestADirectoryWithoutACommitIsRefused(t *testing.T) {
	p := newProject(t)
	empty := t.TempDir()
	gitIn(t, empty, "init", "-q")
	bare := t.TempDir()
	gitIn(t, bare, "init", "-q", "--bare")
	inside := worktree.Store{Dir: filepath.Join(p.dir, "trees"), Records: p.store.Records}
	for name, create := range map[string]func() (worktree.Clone, error){
		"no repository": func() (worktree.Clone, error) {
			return p.store.Create(t.Context(), worktree.Request{Run: "x", Source: t.TempDir()})
		},
		"no commit": func() (worktree.Clone, error) {
			return p.store.Create(t.Context(), worktree.Request{Run: "x", Source: empty})
		},
		"bare": func() (worktree.Clone, error) {
			return p.store.Create(t.Context(), worktree.Request{Run: "x", Source: bare})
		},
		"missing": func() (worktree.Clone, error) {
			return p.store.Create(t.Context(), worktree.Request{Run: "x", Source: "/nonexistent"})
		},
		"store inside": func() (worktree.Clone, error) {
			return inside.Create(t.Context(), worktree.Request{Run: "x", Source: p.dir})
		},
	} {
		_, err := create()
		if _, ok := errors.AsType[*worktree.RepositoryError](err); !ok {
			t.Errorf("%s: Create = %v; want a RepositoryError", name, err)
		}
	}
	if left, err := p.store.Clones(); len(left) != 0 || err != nil {
		t.Errorf("Clones = %v, %v; want none", left, err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := p.store.Create(t.Context(), worktree.Request{Run: "x", Source: p.dir}); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("Create without git = %v", err)
	}
}

func TestALinkThatIsSwappedInIsNotCloned(t *testing.T) {
	p := newProject(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(p.dir, link); err != nil {
		t.Fatal(err)
	}
	_, err := p.store.Create(t.Context(), worktree.Request{Run: "x", Source: link, Resolved: true})
	if _, ok := errors.AsType[*worktree.RepositoryError](err); !ok {
		t.Errorf("Create = %v; want a RepositoryError", err)
	}
	if _, err := p.store.Create(t.Context(), worktree.Request{Run: "x", Source: link}); err != nil {
		t.Errorf("Create of a configured link = %v; want a clone", err)
	}
}

func TestNoRunGetsTheCloneOfAnother(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	if _, err := p.store.Create(t.Context(), worktree.Request{Run: c.Run, Source: p.dir}); !errors.Is(err, os.ErrExist) {
		t.Errorf("Create = %v; want ErrExist", err)
	}
	if again, ok, err := p.store.Open(c.Run); !ok || err != nil || again.Dir != c.Dir {
		t.Errorf("Open = %+v, %v, %v; want the first clone", again, ok, err)
	}
}

func TestRemoveRemovesReadOnlyDirectoriesAndNoLinkedOnes(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	outside := t.TempDir()
	write(t, filepath.Join(outside, "kept"), "x")
	if err := os.Symlink(outside, filepath.Join(c.Dir, "link")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.Dir, "cache/deep/file"), "x")
	for _, dir := range []string{"cache/deep", "cache"} {
		if err := os.Chmod(filepath.Join(c.Dir, dir), 0o500); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.store.Remove(c); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Dir(c.Dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the clone is still there: %v", err)
	}
	read(t, filepath.Join(outside, "kept"))
}

func TestALargeDifferenceIsRefusedAndStays(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	file, err := os.Create(filepath.Join(c.Dir, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Truncate(300<<20), file.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = p.store.Diff(context.Background(), c)
	if _, ok := errors.AsType[*worktree.TooLargeError](err); !ok {
		t.Errorf("Diff = %v; want a TooLargeError", err)
	}
}

func TestAPatchThatWasChangedIsNotUsed(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	write(t, filepath.Join(c.Dir, "README.md"), "changed\n")
	c, err := p.store.Keep(t.Context(), c, t.TempDir(), false)
	if err != nil || c.Work == nil {
		t.Fatalf("Keep = %+v, %v", c, err)
	}
	if _, err := p.store.Patch(c); err != nil {
		t.Error(err)
	}
	write(t, p.store.PatchFile(c), "another patch\n")
	if _, err := p.store.Patch(c); err == nil || !strings.Contains(err.Error(), "was changed since the run ended") {
		t.Errorf("Patch = %v; want an error", err)
	}
}
