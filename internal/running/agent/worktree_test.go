package agent_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/stores/worktree"
)

// inRepository returns an agent that runs a script in clones of a new repository.
func inRepository(t *testing.T, script string, opts agent.Options) (*agent.Agent, worktree.Store) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	for _, args := range [][]string{
		{"init", "-q"}, {"-c", "user.name=u", "-c", "user.email=u@example.com", "commit", "-q", "--allow-empty", "-m", "start"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	top := t.TempDir()
	opts.Worktrees = worktree.Store{Dir: filepath.Join(top, "clones"), Records: filepath.Join(top, "records")}
	agents, err := agent.New([]agent.Binding{{
		ID: "tester", Command: []string{"/bin/sh", "-c", script}, Output: agent.Text, Cwd: dir, Worktree: true,
	}}, opts)
	if err != nil {
		t.Fatal(err)
	}
	g, _ := agents.Lookup("tester")
	return g, opts.Worktrees
}

func attemptOf(t *testing.T, attempt int) task.Job {
	j := jobFor(t, request(""))
	j.Revision, j.Attempt, j.RunID = 1, attempt, "run-"+string(rune('0'+attempt))
	return j
}

func TestAnAttemptGoesOnWithWorkUnlessTheOneBeforeFailed(t *testing.T) {
	g, store := inRepository(t, `cat work 2>/dev/null; echo "$MAILBOX_ATTEMPT" >>work; test "$MAILBOX_ATTEMPT" != 2`, agent.Options{})
	for i, want := range []struct {
		status envelope.Status
		seen   string
	}{
		{envelope.OK, ""}, {envelope.Failed, "1"}, {envelope.OK, ""},
	} {
		j := attemptOf(t, i+1)
		got := g.Run(t.Context(), j, nil)
		if r := got.Result; r.Status != want.status || want.status == envelope.OK && strings.TrimSpace(r.Output.Summary) != want.seen {
			t.Errorf("attempt %d = %s %q %v; want %s %q", i+1, r.Status, r.Output.Summary, r.Error, want.status, want.seen)
		}
		c, ok, err := store.Open(j.RunID)
		if err != nil || !ok || c.Work == nil {
			t.Fatalf("attempt %d has no work: %+v, %v", i+1, c, err)
		}
		patch, err := store.Patch(c)
		if err != nil || !strings.Contains(string(patch), "+"+j.RunID[4:]) {
			t.Errorf("patch of attempt %d = %q, %v", i+1, patch, err)
		}
		if i == 1 && !strings.Contains(string(patch), "+1\n+2\n") {
			t.Errorf("patch of attempt 2 = %q; want the work of both", patch)
		}
	}
}

func TestTheWorkOfARunIsKeptByTheNextDaemon(t *testing.T) {
	g, store := inRepository(t, "exit 0", agent.Options{
		Await: func(context.Context, string) (task.Exit, bool, error) { return task.Exit{PID: 1}, true, nil },
	})
	j := attemptOf(t, 1)
	c, err := store.Create(t.Context(), worktree.Request{Run: j.RunID, Task: "t1", Revision: 1, Attempt: 1, Source: g.Binding().Cwd})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "new"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a daemon may die between keeping the work and recording the end
		got := g.Recover(t.Context(), j)
		if !slices.ContainsFunc(got.Result.Artifacts, func(r envelope.Ref) bool {
			return r == envelope.Ref{Kind: "diff", URI: "file://" + filepath.Join(j.Dir, "diff.patch")}
		}) {
			t.Errorf("artifacts = %v; want the patch", got.Result.Artifacts)
		}
	}
}

func TestWorkThatCannotBeKeptAsksForAReview(t *testing.T) {
	g, _ := inRepository(t, `truncate -s 300000000 large`, agent.Options{})
	got := g.Run(t.Context(), attemptOf(t, 1), nil)
	if r := got.Result; r.Status != envelope.OK || !strings.Contains(r.Review.Reason, "more than 256 MiB") {
		t.Errorf("result = %s, review %+v; want ok with a review", r.Status, r.Review)
	}
}

func TestARunThatChangesTheRepositoryBesideItsWorktreeIsReviewed(t *testing.T) {
	for script, want := range map[string]bool{
		`echo x >here.txt; echo done`: false,
		`source=$(dirname "$(dirname "$(cat .git/objects/info/alternates)")"); echo x >"$source/beside.txt"; echo done`: true,
	} {
		g, _ := inRepository(t, script, agent.Options{})
		r := g.Run(t.Context(), attemptOf(t, 1), nil).Result
		const words = "changed while the run was working in its worktree: ./beside.txt; the run may have done it, or another program"
		if r.Status != envelope.OK || r.Review.Required != want || strings.Contains(r.Review.Reason, words) != want {
			t.Errorf("%s: result %s, review %+v; want a review: %t", script, r.Status, r.Review, want)
		}
	}
}
