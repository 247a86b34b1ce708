package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/sandboxing/sandbox"
	"mailboxd/internal/stores/worktree"
)

// TestARunInAWorktreeIsNotToldTheSourceRepository looks for its path in all that the agent gets:
// standard input, environment, the files of its run, and its clone, in which only git needs it.
func TestARunInAWorktreeIsNotToldTheSourceRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed, and it makes the clones of worktrees")
	}
	source, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	source = filepath.Join(source, "original-place")
	for _, args := range [][]string{
		{"init", "-q", source},
		{"-C", source, "-c", "user.name=u", "-c", "user.email=u@example.com", "commit", "-q", "--allow-empty", "-m", "start"},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	const script = `cat >in; env >env; cp -r "$MAILBOX_RUN_DIR" run; cp -r .git repository; pwd`
	for name, b := range map[string]agent.Binding{
		"request":  {Stdin: agent.Request},
		"prompt":   {Stdin: agent.Prompt},
		"dispatch": {Stdin: agent.Dispatch},
		"action":   {Stdin: agent.Action},
		"clutch":   {Stdin: agent.Request, Dialect: envelope.Clutch},
		"cap":      {Stdin: agent.Request, Dialect: envelope.CAP},
		"clowl":    {Stdin: agent.Request, Dialect: envelope.CLowl},
		"sandbox":  {Stdin: agent.Prompt, Sandbox: sandbox.Settings{Profile: sandbox.Workspace, Missing: sandbox.Open}},
	} {
		for _, asked := range []bool{true, false} {
			top := t.TempDir()
			store := worktree.Store{Dir: filepath.Join(top, "clones"), Records: filepath.Join(top, "records")}
			b.ID, b.Command, b.Output, b.Workdirs, b.Worktree = "tester", []string{"/bin/sh", "-c", script}, agent.Text, []string{source}, true
			text := request("")
			if asked {
				text = request(`, "metadata":{"mbx.workdir":"` + source + `","mbx.worktree":true}`)
			} else {
				b.Cwd = source
			}
			if b.Sandbox.Active() {
				b.Sandbox.Cwd = sandbox.Path{Name: b.Cwd, Real: b.Cwd}
			}
			agents, err := agent.New([]agent.Binding{b}, agent.Options{Worktrees: store})
			if err != nil {
				t.Fatal(err)
			}
			g, _ := agents.Lookup("tester")
			j := jobFor(t, text)
			j.Revision, j.Attempt, j.RunID = 1, 1, "run-1"
			got := g.Run(t.Context(), j, nil)
			c, ok, err := store.Open("run-1")
			if !ok || err != nil {
				t.Fatalf("%s: no clone: %v, %+v", name, err, got.Result.Error)
			}
			checkNoPath(t, name, c.Dir, source)
		}
	}
}

// checkNoPath looks for a path in the files of a directory.
func checkNoPath(t *testing.T, name, dir, secret string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "alternates" { // git finds the objects of the source there
			return err
		}
		files++
		if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), secret) {
			t.Errorf("%s: %s names the source repository, %v:\n%s", name, path, err, text)
		}
		return nil
	})
	if _, missing := os.Stat(filepath.Join(dir, "env")); err != nil || missing != nil || files < 5 {
		t.Errorf("%s: %d files, %v, %v", name, files, err, missing)
	}
}
