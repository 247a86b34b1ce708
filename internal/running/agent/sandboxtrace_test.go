package agent_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/host"
	"mailboxd/internal/sandboxing/sandbox"
	"mailboxd/internal/testtools/slowtest"
)

func TestASandboxLeavesNoTraceInAProject(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	if _, err := host.FindBubblewrap(); err != nil {
		t.Skip(err)
	}
	home, project := t.TempDir(), t.TempDir()
	for _, dir := range []string{".git/hooks", "src", "tools/hooks", "linked/.git"} {
		if err := os.MkdirAll(filepath.Join(project, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	login := filepath.Join(home, "login.json")
	for _, path := range []string{login, project + "/.git/config", project + "/.git/hooks/pre-commit", project + "/src/main.c", project + "/tools/hooks/pre-commit"} {
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	linked := filepath.Join(project, "linked")
	if err := errors.Join(os.Symlink("../../tools/hooks", linked+"/.git/hooks"), os.Symlink("main.c", project+"/src/link")); err != nil {
		t.Fatal(err)
	}
	path := func(name string) sandbox.Path { return sandbox.Path{Name: name, Real: name} }
	agents, err := agent.New([]agent.Binding{{
		ID: "a", Command: []string{"/bin/sh", "-c", "cat src/main.c && echo done"}, Cwd: project, Output: agent.Text, Env: []string{"HOME=" + home},
		Sandbox: sandbox.Settings{
			Profile: sandbox.Workspace, Missing: sandbox.Refuse, Cwd: path(project),
			Home: []sandbox.Path{path(login)}, Write: []sandbox.Path{path(linked), path(project + "/absent")},
		},
	}}, agent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := treeOf(t, project) + treeOf(t, home)
	for n := range slowtest.Times(100) {
		job := task.Job{Task: envelope.Task{ID: "t", Agent: "a"}, Dir: t.TempDir(), RunID: fmt.Sprint(n)}
		o := agents.Run(t.Context(), job, nil)
		if o.Result.Status != envelope.OK || !o.Exit.Sandboxed || o.Result.Review.Required {
			t.Fatalf("Run = %+v, %+v; want an answer from a sandbox", o.Result, o.Exit)
		}
	}
	if after := treeOf(t, project) + treeOf(t, home); after != before {
		t.Errorf("the files changed from\n%s to\n%s", before, after)
	}
}

// treeOf describes all files of a directory, with their times.
func treeOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var sum [sha256.Size]byte
		if e.Type().IsRegular() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum = sha256.Sum256(text)
		}
		fmt.Fprintf(&all, "%s %v %v %x\n", path, info.Mode(), info.ModTime(), sum)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
