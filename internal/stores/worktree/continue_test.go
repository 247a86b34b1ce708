package worktree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/stores/worktree"
)

// ended keeps the work of a clone.
func (p *project) ended(c worktree.Clone) worktree.Clone {
	p.t.Helper()
	c, err := p.store.Keep(p.t.Context(), c, p.runDir(c.Run), false)
	if err != nil || c.Work.Problem != "" {
		p.t.Fatalf("Keep = %+v, %v", c.Work, err)
	}
	return c
}

func (p *project) runDir(run string) string {
	p.t.Helper()
	dir := filepath.Join(p.store.Records, "..", "runs", run)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	return dir
}

func (p *project) next(c worktree.Clone, run string) worktree.Clone {
	p.t.Helper()
	next, err := p.store.Continue(p.t.Context(), worktree.Request{Run: run, Task: run}, c, p.runDir(run))
	if err != nil {
		p.t.Fatal(err)
	}
	return next
}

func (p *project) patchOf(c worktree.Clone) string {
	p.t.Helper()
	patch, err := p.store.Patch(c)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(patch)
}

func TestWorkThatGoesOnAfterApplyIsWhatIsNew(t *testing.T) {
	p := newProject(t)
	first := p.clone()
	write(t, filepath.Join(first.Dir, "README.md"), "one\ntwo\nthree\nfour\n")
	write(t, filepath.Join(first.Dir, "trace.log"), "ignored\n")
	first = p.ended(first)
	if err := p.store.Apply(t.Context(), p.dir, nil, []byte(p.patchOf(first))); err != nil {
		t.Fatal(err)
	}
	first.Applied = time.Now()
	if err := p.store.Update(first); err != nil {
		t.Fatal(err)
	}

	second := p.next(first, "second")
	if second.Dir != first.Dir || read(t, filepath.Join(second.Dir, "trace.log")) != "ignored\n" {
		t.Errorf("the work goes on in %s; want %s as it is", second.Dir, first.Dir)
	}
	write(t, filepath.Join(second.Dir, "README.md"), "one\ntwo\nthree\nfour\nfive\n")
	second = p.ended(second)
	if patch := p.patchOf(second); strings.Contains(patch, "+four") || !strings.Contains(patch, "+five") {
		t.Errorf("the difference is\n%s\nwant what is new since apply", patch)
	}
	earlier, err := p.store.EarlierPatch(second)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.store.Apply(t.Context(), p.dir, nil, []byte(p.patchOf(second))); err == nil {
		t.Error("a file with changes that are not committed was changed")
	}
	if err := p.store.Apply(t.Context(), p.dir, earlier, []byte(p.patchOf(second))); err != nil {
		t.Errorf("after the earlier work was applied: %v", err)
	}
	if got := read(t, filepath.Join(p.dir, "README.md")); !strings.HasSuffix(got, "four\nfive\n") {
		t.Errorf("README.md = %q", got)
	}
	branch := worktree.Commit{Parent: second.Commit, Branch: second.Branch, Time: time.Unix(1e9, 0), Earlier: earlier}
	if _, err := p.store.FetchBranch(t.Context(), p.dir, []byte(p.patchOf(second)), branch); err != nil {
		t.Fatal(err)
	}
	if got := p.git("show", second.Branch+":README.md"); !strings.HasSuffix(got, "four\nfive\n") {
		t.Errorf("README.md of the branch = %q; want all of the work", got)
	}
}

func TestWorkThatWasNotAppliedIsPartOfWhatGoesOn(t *testing.T) {
	p := newProject(t)
	first := p.clone()
	write(t, filepath.Join(first.Dir, "first.txt"), "1\n")
	first = p.ended(first)
	second := p.next(first, "second")
	write(t, filepath.Join(second.Dir, "second.txt"), "2\n")
	second = p.ended(second)
	if patch := p.patchOf(second); !strings.Contains(patch, "first.txt") || !strings.Contains(patch, "second.txt") {
		t.Errorf("the difference is\n%s\nwant the work of both", patch)
	}
}

func TestARemovedCloneIsMadeAgainWithItsWork(t *testing.T) {
	p := newProject(t)
	first := p.clone()
	write(t, filepath.Join(first.Dir, "first.txt"), "1\n")
	first = p.ended(first)
	if err := p.store.Clear(first, time.Now()); err != nil {
		t.Fatal(err)
	}
	second := p.next(first, "second")
	if got := read(t, filepath.Join(first.Dir, "first.txt")); got != "1\n" || second.Dir != first.Dir {
		t.Errorf("first.txt = %q in %s; want the work in %s", got, second.Dir, first.Dir)
	}
	if err := p.store.CanContinue(first); err != nil {
		t.Errorf("CanContinue = %v; want nil, since the last clone there counts", err)
	}
	if err := os.RemoveAll(second.Dir); err != nil {
		t.Fatal(err)
	}
	if err := p.store.CanContinue(first); err == nil {
		t.Error("a clone that somebody removed can be continued")
	}
}

func TestNothingGoesOnWithDiscardedWork(t *testing.T) {
	p := newProject(t)
	first := p.clone()
	write(t, filepath.Join(first.Dir, "first.txt"), "1\n")
	first = p.ended(first)
	second := p.ended(p.next(first, "second"))
	second.Discarded = time.Now()
	if err := p.store.Update(second); err != nil {
		t.Fatal(err)
	}
	for _, c := range []worktree.Clone{first, second} {
		if err := p.store.CanContinue(c); err == nil || !strings.Contains(err.Error(), "discarded") {
			t.Errorf("CanContinue of %s = %v; want that the work of second was discarded", c.Run, err)
		}
	}
}
