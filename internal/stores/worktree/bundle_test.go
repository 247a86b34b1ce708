package worktree_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/stores/worktree"
)

// newRunner is the store of another machine, which has nothing of the project.
func newRunner(t *testing.T) worktree.Store {
	top := t.TempDir()
	return worktree.Store{
		Dir: filepath.Join(top, "worktrees"), Records: filepath.Join(top, "records"), Received: filepath.Join(top, "repositories"),
	}
}

// send makes a bundle for a runner, and gives it to it.
func (p *project) send(to worktree.Store) worktree.Bundle {
	p.t.Helper()
	have, err := to.Commits(p.t.Context(), 10)
	if err != nil {
		p.t.Fatal(err)
	}
	b, file := p.bundle(have)
	if err := to.Receive(p.t.Context(), b, file); err != nil {
		p.t.Fatal(err)
	}
	return b
}

func (p *project) bundle(have map[string][]string) (worktree.Bundle, string) {
	p.t.Helper()
	file := filepath.Join(p.t.TempDir(), "bundle")
	b, err := p.store.Bundle(p.t.Context(), worktree.BundleRequest{Source: p.dir, File: file, Have: have})
	if err != nil {
		p.t.Fatal(err)
	}
	return b, file
}

func (p *project) run(to worktree.Store, b worktree.Bundle) worktree.Clone {
	p.t.Helper()
	p.runs++
	c, err := to.Create(p.t.Context(), worktree.Request{
		Run: "run-" + time.Now().Format("150405.000000000"), Task: "t", Revision: 1, Attempt: 1, Received: &b,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func TestTheWorkOfARunAtAnotherMachineComesBackAsAPatch(t *testing.T) {
	p, far := newProject(t), newRunner(t)
	p.write("README.md", "not committed\n")
	b := p.send(far)
	c := p.run(far, b)
	if got := read(t, filepath.Join(c.Dir, "README.md")); got != "one\ntwo\nthree\n" {
		t.Errorf("README.md of the clone is %q; want what is committed", got)
	}
	if !slices.Equal(c.Uncommitted, []string{"README.md"}) {
		t.Errorf("files that the clone doesn't have: %q; want README.md", c.Uncommitted)
	}
	write(t, filepath.Join(c.Dir, "sub/main.txt"), "changed\n")
	kept, err := far.Keep(t.Context(), c, t.TempDir(), false)
	if err != nil || kept.Work.Problem != "" {
		t.Fatal(err, kept.Work)
	}
	patch, err := far.Patch(kept)
	if err != nil {
		t.Fatal(err)
	}
	q := worktree.Request{Run: "r1", Task: "t", Revision: 1, Attempt: 1, Source: p.dir}
	home, err := p.store.Adopt(t.Context(), q, t.TempDir(), worktree.Returned{Bundle: b, Patch: patch, Digest: kept.Work.Digest})
	if err != nil {
		t.Fatal(err)
	}
	if f := home.Work.Summary.Files; len(f) != 1 || f[0].Path != "sub/main.txt" || f[0].Added != 1 {
		t.Errorf("summary = %+v; want one line in sub/main.txt", home.Work.Summary)
	}
	again, ok, err := p.store.Open("r1")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	mine, err := p.store.Patch(again)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.store.Apply(t.Context(), p.dir, nil, mine); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(p.dir, "sub/main.txt")); got != "changed\n" {
		t.Errorf("sub/main.txt = %q after apply", got)
	}
	if err := p.store.Remove(again); err != nil {
		t.Error(err)
	}
}

func TestABundleHasOnlyWhatTheReceiverLacks(t *testing.T) {
	p, far := newProject(t), newRunner(t)
	p.write("large.txt", strings.Repeat(hex.EncodeToString(sha256.New().Sum(nil)), 5000)+randomText(100_000))
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "large")
	first := p.send(far)
	if again, _ := p.bundle(map[string][]string{first.Repository: {first.Commit}}); again.Size != 0 {
		t.Errorf("a bundle of a commit that the receiver has takes %d bytes; want none", again.Size)
	}
	p.write("small.txt", "small\n")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "small")
	second := p.send(far)
	if second.Size == 0 || second.Size > first.Size/10 {
		t.Errorf("the bundles have %d and then %d bytes; want a small second one", first.Size, second.Size)
	}
	c := p.run(far, second)
	if got := read(t, filepath.Join(c.Dir, "small.txt")); got != "small\n" {
		t.Errorf("small.txt = %q", got)
	}
	if err := newRunner(t).Receive(t.Context(), second, ""); err == nil {
		t.Error("a bundle was received without its file")
	}
	b, file := p.bundle(map[string][]string{first.Repository: {first.Commit}})
	if err := newRunner(t).Receive(t.Context(), b, file); !errors.Is(err, worktree.ErrLacks) {
		t.Errorf("a thin bundle where its commits are missing: %v; want ErrLacks", err)
	}
}

func TestACommitOfAShallowRepositoryTravels(t *testing.T) {
	p, far := newProject(t), newRunner(t)
	p.write("more.txt", "more\n")
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "more")
	shallow := filepath.Join(t.TempDir(), "shallow")
	p.git("clone", "-q", "--depth=1", "file://"+p.dir, shallow)
	p.dir = shallow
	c := p.run(far, p.send(far))
	if got := read(t, filepath.Join(c.Dir, "more.txt")); got != "more\n" {
		t.Errorf("more.txt = %q", got)
	}
}

func TestAWorktreeGoesOnWithThePatchThatCame(t *testing.T) {
	p, far := newProject(t), newRunner(t)
	b := p.send(far)
	c := p.run(far, b)
	write(t, filepath.Join(c.Dir, "new.txt"), "one\n")
	d, err := far.Diff(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	next, err := far.Create(t.Context(), worktree.Request{
		Run: "next", Task: "t", Revision: 1, Attempt: 2, Received: &b, Patch: d.Patch, Copy: []string{"node_modules"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(next.Dir, "new.txt")); got != "one\n" {
		t.Errorf("new.txt = %q; want the earlier work", got)
	}
	if len(next.NotCopied) != 1 {
		t.Errorf("not copied: %q; want node_modules with a reason", next.NotCopied)
	}
}

func TestAHostileBundleIsRefused(t *testing.T) {
	p := newProject(t)
	good, file := p.bundle(nil)
	text := []byte(read(t, file))
	for name, change := range map[string]func(b *worktree.Bundle, text []byte) []byte{
		"a path out of the repository":   func(b *worktree.Bundle, text []byte) []byte { b.Prefix = "../x/"; return text },
		"a name with a path":             func(b *worktree.Bundle, text []byte) []byte { b.Name = "a/b"; return text },
		"a name .git":                    func(b *worktree.Bundle, text []byte) []byte { b.Name = ".git"; return text },
		"a repository with a path":       func(b *worktree.Bundle, text []byte) []byte { b.Repository = "../../x"; return text },
		"an option for a commit":         func(b *worktree.Bundle, text []byte) []byte { b.Commit = "--help"; return text },
		"another commit":                 func(b *worktree.Bundle, text []byte) []byte { b.Commit = strings.Repeat("a", 40); return text },
		"other bytes":                    func(_ *worktree.Bundle, text []byte) []byte { text[len(text)-30] ^= 1; return text },
		"fewer bytes":                    func(_ *worktree.Bundle, text []byte) []byte { return text[:len(text)-5] },
		"more bytes":                     func(_ *worktree.Bundle, text []byte) []byte { return append(text, "more"...) },
		"no bundle":                      func(_ *worktree.Bundle, _ []byte) []byte { return []byte("hello") },
		"a file that isn't as announced": func(b *worktree.Bundle, text []byte) []byte { b.SHA256 = strings.Repeat("0", 64); return text },
	} {
		t.Run(name, func(t *testing.T) {
			far, b := newRunner(t), good
			path := filepath.Join(t.TempDir(), "bundle")
			if err := os.WriteFile(path, change(&b, slices.Clone(text)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := far.Receive(t.Context(), b, path); err == nil {
				t.Fatal("it was received")
			}
			b.Size = 0
			if err := far.Receive(t.Context(), b, ""); err == nil {
				t.Error("its commit is there")
			}
		})
	}
}

func TestAPatchThatCameBackIsTakenOnlyIfItFitsItsCommit(t *testing.T) {
	p := newProject(t)
	b, _ := p.bundle(nil)
	const good = "diff --git a/n.txt b/n.txt\nnew file mode 100644\n--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+n\n"
	q := worktree.Request{Run: "r", Task: "t", Revision: 1, Attempt: 1, Source: p.dir}
	for name, patch := range map[string]string{
		"a path with ..": strings.ReplaceAll(good, "n.txt", "../n.txt"),
		"a file in .git": strings.ReplaceAll(good, "n.txt", ".git/hooks/post-commit"),
		"a .GIT":         strings.ReplaceAll(good, "n.txt", ".GIT/config"),
		"another commit": "diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-other\n+new\n",
		"no patch":       "hello",
		"a submodule": "diff --git a/m b/m\nnew file mode 160000\n--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n" +
			"+Subproject commit " + strings.Repeat("a", 40) + "\n",
		"a bare repository": strings.ReplaceAll(good, "n.txt", "x/HEAD") + strings.ReplaceAll(good, "n.txt", "x/objects/a") +
			strings.ReplaceAll(good, "n.txt", "x/refs/a"),
	} {
		_, err := p.store.Adopt(t.Context(), q, t.TempDir(), worktree.Returned{Bundle: b, Patch: []byte(patch), Digest: digest(patch)})
		if err == nil {
			t.Errorf("%s: the patch was taken", name)
		}
	}
	returned := worktree.Returned{Bundle: b, Patch: []byte(good), Digest: digest("other")}
	if _, err := p.store.Adopt(t.Context(), q, t.TempDir(), returned); err == nil {
		t.Error("a patch with another digest was taken")
	}
	if _, ok, _ := p.store.Open("r"); ok {
		t.Error("a refused patch left a record")
	}
	returned.Digest = digest(good)
	if _, err := p.store.Adopt(t.Context(), q, t.TempDir(), returned); err != nil {
		t.Error(err)
	}
}

func TestReceivedCommitsGoWhenNoRunNeedsThem(t *testing.T) {
	p, far := newProject(t), newRunner(t)
	c := p.run(far, p.send(far))
	later := time.Now().Add(time.Hour)
	if err := far.ForgetReceived(later); err != nil {
		t.Fatal(err)
	}
	if all, _ := far.Commits(t.Context(), 10); len(all) != 1 {
		t.Fatal("the commits of a clone are gone")
	}
	if err := far.Remove(c); err != nil {
		t.Fatal(err)
	}
	if err := far.ForgetReceived(later); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(far.Received); len(left) != 0 {
		t.Error("commits that no run needs are kept")
	}
}

func TestABundleThatComesToOldCommitsKeepsThem(t *testing.T) {
	p, far := newProject(t), newRunner(t)
	p.send(far)
	p.git("commit", "-q", "--allow-empty", "-m", strings.Repeat("long ", 2000)) // the bundle after it names it
	b := p.send(far)
	dir, old := filepath.Join(far.Received, b.Repository+".git"), time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	p.git("commit", "-q", "--allow-empty", "-m", "next")
	p.send(far)
	if err := far.ForgetReceived(time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(far.Received, "broken.git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if all, err := far.Commits(t.Context(), 10); err != nil || len(all) != 1 {
		t.Errorf("commits %v, %v; want those of the one repository that git reads", all, err)
	}
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// randomText is text that doesn't compress.
func randomText(n int) string {
	var text strings.Builder
	sum := sha256.Sum256(nil)
	for text.Len() < n {
		sum = sha256.Sum256(sum[:])
		text.WriteString(hex.EncodeToString(sum[:]))
	}
	return text.String()
}

func TestACommitOfAnotherRepositoryIsSentThoughTheReceiverHasIt(t *testing.T) {
	p, far := newProject(t), newRunner(t)
	p.send(far)
	second := *p
	second.dir += "-2"
	p.git("clone", "-q", p.dir, second.dir)
	b := second.send(far)
	if got := read(t, filepath.Join(second.run(far, b).Dir, "README.md")); got != "one\ntwo\nthree\n" {
		t.Errorf("README.md of the clone is %q; want what is committed", got)
	}
}
