package owner_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/owner"
	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/worktree"
)

// git runs git in a directory, and returns what it prints.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@example.com", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// repository returns a job in a repository with one commit, and the change of an owner whose runs work in its clones.
func repository(t *testing.T) (task.Job, func(*owner.Options)) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed, so no repository can be made: apt-get install git")
	}
	top := t.TempDir()
	j := jobFor(t)
	j.Cwd = filepath.Join(top, "project")
	git(t, top, "init", "-q", j.Cwd)
	if err := os.WriteFile(filepath.Join(j.Cwd, "a.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, j.Cwd, "add", "-A")
	git(t, j.Cwd, "commit", "-q", "-m", "start")
	return j, func(o *owner.Options) {
		o.Worktree = func(string) bool { return true }
		o.Worktrees = worktree.Store{Dir: filepath.Join(top, "worktrees"), Records: filepath.Join(top, "records")}
	}
}

// commitOf returns the commit that a job names.
func commitOf(t *testing.T, j fleet.Job) *fleet.Worktree {
	t.Helper()
	var w fleet.Work
	if err := fleet.DecodeLarge(j.Work, &w); err != nil {
		t.Fatal(err)
	}
	if w.Worktree == nil || w.Worktree.Bundle == nil {
		t.Fatalf("the job has the commit %+v; want a bundle", w.Worktree)
	}
	return w.Worktree
}

func TestTheDifferenceOfARunIsKeptWhenTheOwnerStartedAgain(t *testing.T) {
	j, change := repository(t)
	m, s := start(t, change)
	j, outcome, job := m.begin(t, s, j)
	s.lists([]fleet.RunReport{{Token: job.Token, State: fleet.Began}})
	m.stop()
	await(t, "the end of the wait", outcome)
	again := startOwner(t, m.url, m.dir, change)
	if err := os.WriteFile(filepath.Join(j.Cwd, "a.txt"), []byte("two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	patch, err := s.link.Put(t.Context(), fleet.ObjectPatch, "patch-1", "", strings.NewReader(git(t, j.Cwd, "diff", "--binary", "--full-index")))
	if err != nil {
		t.Fatal(err)
	}
	j.Cwd = "" // the ledger doesn't have it
	recovered := make(chan task.Outcome, 1)
	background(t, func() { recovered <- again.Recover(t.Context(), j) })
	wait := background(t, func() { s.done(job.Token, "changed", patch) })
	if got := await(t, "the outcome", recovered); got.Patch != patch.SHA256 {
		t.Errorf("the outcome has the patch %q, %+v; want %s", got.Patch, got.Result.Review, patch.SHA256)
	}
	again.end(job.Token, fleet.PastSettled)
	again.Settled(j.At)
	wait()
}

func TestABundleThatCameTooLateForItsClaimIsSentWithTheNextAttempt(t *testing.T) {
	j, change := repository(t)
	m, s := start(t, change)
	first := m.assign(t, 7, j)
	if _, err := s.link.Claim(t.Context(), fleet.Claim{Report: s.next(), ID: "newer", Free: 1}); err != nil {
		t.Fatal(err) // it ended the claim that the run was assigned to, and was ended by the next one
	}
	outcome := m.run(t, context.WithoutCancel(t.Context()), first)
	s.lists(nil, fleet.Token(first.At.Token))
	if _, err := s.link.Beat(t.Context(), fleet.Beat{Report: s.next()}); err != nil {
		t.Fatal(err)
	}
	if got := await(t, "the outcome", outcome); got.Void == nil {
		t.Errorf("the outcome is %+v; want that the run never began", got)
	}
	m.Settled(first.At)
	s.lists(nil)
	second, outcome, job := m.begin(t, s, j)
	commit := commitOf(t, job)
	if !strings.HasPrefix(commit.Bundle.Key, first.At.Token) {
		t.Errorf("the bundle has the key %s; want the one of the attempt before, %s", commit.Bundle.Key, first.At.Token)
	}
	var bundle bytes.Buffer
	if err := s.link.Get(t.Context(), *commit.Bundle, &bundle); err != nil {
		t.Error(err)
	}
	var detail worktree.Bundle
	if err := fleet.DecodeLarge(commit.Detail, &detail); err != nil || detail.Size != commit.Bundle.Size || detail.SHA256 != commit.Bundle.SHA256 {
		t.Errorf("the description of the bundle is %+v, %v; want size and digest of its object", detail, err)
	}
	background(t, func() { s.done(job.Token, "done") })
	await(t, "the outcome", outcome)
	m.end(job.Token, fleet.PastSettled)
	m.Settled(second.At)
}

// put sends a text of the stub's run to the owner.
func (s *stub) put(kind fleet.ObjectKind, key, text string) fleet.Object {
	s.t.Helper()
	object, err := s.link.Put(s.t.Context(), kind, key, "", strings.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	return object
}

func TestAResultSaysWhatOfItsRunDidNotComeAndWhereItIs(t *testing.T) {
	j, change := repository(t)
	var store worktree.Store
	m, s := start(t, change, func(o *owner.Options) { o.MaxFile, store = 10, o.Worktrees })
	_, outcome, job := m.begin(t, s, j)
	log, patch := s.put(fleet.ObjectLog, "log-1", "more than ten bytes"), s.put(fleet.ObjectPatch, "patch-1", "eleven and 1")
	left := []fleet.Left{{What: "stderr.log has 300 MiB", Path: "/far/left/r1/stderr.log"}}
	background(t, func() {
		s.ends(job.Token, fleet.Outcome{Result: envelope.Result{Status: envelope.OK}, Left: left}, log, patch)
	})
	got := await(t, "the outcome", outcome)
	for _, want := range []string{
		"stderr.log has 300 MiB; at runner gpu-1 it is in /far/left/r1/stderr.log",
		"the output of runner gpu-1 was not taken: it has 19 bytes, and at most 10 are taken",
		"the patch of runner gpu-1 was not taken: it has 12 bytes, and at most 10 are taken",
	} {
		if !strings.Contains(got.Result.Review.Reason, want) || !got.Result.Review.Required {
			t.Errorf("the review says %q; want %q", got.Result.Review.Reason, want)
		}
	}
	c, ok, err := store.Open(j.RunID)
	if err != nil || !ok || c.Work == nil || !strings.Contains(c.Work.Problem, "the patch of runner gpu-1 was not taken") {
		t.Errorf("the record of the worktree is %+v, %v, %v; want it to say why there is no patch", c.Work, ok, err)
	}
	m.end(job.Token, fleet.PastSettled)
	m.Settled(task.Assignment{Runner: "gpu-1", Incarnation: "inc1", Token: string(job.Token)})
}

func TestAnAttemptAtARunnerGoesOnWithTheWorkOfTheOneBefore(t *testing.T) {
	goesOn(t, fleet.Outcome{Hold: task.Reply, Result: envelope.Result{Status: envelope.OK}}, func(j *task.Job) { j.Attempt = 2 })
}

func TestAnotherRoundAtARunnerGoesOnWithTheWorkOfTheRunThatItNames(t *testing.T) {
	goesOn(t, fleet.Outcome{Result: envelope.Result{Status: envelope.OK}}, func(j *task.Job) {
		j.Task.ID, j.After = "round-2", j.RunID
	})
}

// goesOn has a runner end a run, and then gives it another one that begins with the work of the first.
func goesOn(t *testing.T, end fleet.Outcome, next func(*task.Job)) {
	t.Helper()
	j, change := repository(t)
	m, s := start(t, change)
	j, outcome, job := m.begin(t, s, j)
	if err := os.WriteFile(filepath.Join(j.Cwd, "a.txt"), []byte("two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	work := git(t, j.Cwd, "diff", "--binary", "--full-index")
	git(t, j.Cwd, "checkout", "-q", "a.txt")
	git(t, j.Cwd, "commit", "-q", "--allow-empty", "-m", "newer")
	patch := s.put(fleet.ObjectPatch, "patch-1", work)
	background(t, func() {
		s.ends(job.Token, end, patch)
	})
	await(t, "the outcome", outcome)
	m.end(job.Token, fleet.PastSettled)
	m.Settled(j.At)
	first := commitOf(t, job)
	next(&j)
	j.RunID, j.Dir = "r2", filepath.Join(t.TempDir(), "second")
	j, outcome, job = m.begin(t, s, j)
	commit := commitOf(t, job)
	if commit.Commit != first.Commit || commit.Patch == nil {
		t.Fatalf("the next attempt begins with %+v; want the commit %s and the work of the attempt before", commit, first.Commit)
	}
	var sent bytes.Buffer
	if err := s.link.Get(t.Context(), *commit.Patch, &sent); err != nil || sent.String() != work {
		t.Errorf("the earlier work is %q, %v; want %q", sent.String(), err, work)
	}
	background(t, func() { s.done(job.Token, "done") })
	await(t, "the outcome", outcome)
	m.end(job.Token, fleet.PastSettled)
	m.Settled(j.At)
}

func TestTheArtifactsThatARequestRefersToGoToItsRunner(t *testing.T) {
	store := artifact.In(t.TempDir(), 0)
	kept, err := store.Put(strings.NewReader("weights"), 100)
	if err != nil {
		t.Fatal(err)
	}
	m, s := start(t, func(o *owner.Options) { o.Artifacts = store })
	j := jobFor(t)
	missing := strings.Repeat("0", 64)
	j.Task.Refs = []envelope.Ref{{Kind: "model", URI: envelope.ArtifactURI(kept.Digest)}, {Kind: "model", URI: envelope.ArtifactURI(missing)}}
	j, outcome, job := m.begin(t, s, j)
	var w fleet.Work
	if err := fleet.DecodeLarge(job.Work, &w); err != nil || w.Check() != nil {
		t.Fatal(err, w.Check())
	}
	if len(w.Inputs) != 1 || w.Inputs[0].Name != kept.Digest || w.Inputs[0].SHA256 != kept.Digest {
		t.Fatalf("the inputs are %+v; want the artifact that is kept", w.Inputs)
	}
	var sent bytes.Buffer
	if err := s.link.Get(t.Context(), w.Inputs[0], &sent); err != nil || sent.String() != "weights" {
		t.Errorf("the artifact is %q, %v", sent.String(), err)
	}
	background(t, func() { s.done(job.Token, "done") })
	await(t, "the outcome", outcome)
	m.end(job.Token, fleet.PastSettled)
	m.Settled(j.At)
}
