// Package release_test runs the scripts that make a release, in copies of the tree.
package release_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A checkout is a clone of the tree, with its changes committed.
type checkout struct {
	t   *testing.T
	dir string
	env []string // added to the environment of its commands

	signers string // the file of those whose signature counts
}

// with is the checkout for a subtest, with more variables.
func (c *checkout) with(t *testing.T, env ...string) *checkout {
	return &checkout{t: t, dir: c.dir, env: slices.Concat(c.env, env), signers: c.signers}
}

// copyOfTree copies what git has or would add of this tree, so that a test before a commit has it too.
func copyOfTree(t *testing.T) *checkout {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed, which copies the tree")
	}
	here := &checkout{t: t, dir: "../../.."}
	files := here.must("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	c := &checkout{t: t, dir: t.TempDir(), env: []string{
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_AUTHOR_DATE=2026-03-09T20:00:00Z", "GIT_COMMITTER_DATE=2026-03-09T20:00:00Z", "GOFLAGS=", "RELEASE_KEY=",
	}}
	for name := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		c.copy(name)
	}
	c.must("git", "init", "-q")
	c.commit("The tree")
	return c
}

func (c *checkout) copy(name string) {
	c.t.Helper()
	from, to := filepath.Join("../../..", name), filepath.Join(c.dir, name)
	info, err := os.Lstat(from)
	if errors.Is(err, os.ErrNotExist) {
		return // removed, and not committed yet
	}
	if err != nil || !info.Mode().IsRegular() {
		c.t.Fatalf("copy %s: %v, %v; want a regular file", name, info, err)
	}
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, text, info.Mode())
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// commit commits all changes.
func (c *checkout) commit(message string) {
	c.t.Helper()
	c.must("git", "add", "-A")
	c.must("git", "commit", "-q", "-m", message)
}

// write changes a file.
func (c *checkout) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// run runs a program, by its path in the checkout if it has a slash. It returns all that it prints.
func (c *checkout) run(program string, args ...string) (out string, code int) {
	c.t.Helper()
	if strings.Contains(program, "/") && !filepath.IsAbs(program) {
		program = filepath.Join(c.dir, program)
	}
	cmd := exec.CommandContext(c.t.Context(), program, args...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	text, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(text), exit.ExitCode()
	}
	if err != nil {
		c.t.Fatalf("%s %q: %v", program, args, err)
	}
	return string(text), 0
}

// must runs a program that succeeds.
func (c *checkout) must(program string, args ...string) (out string) {
	c.t.Helper()
	out, code := c.run(program, args...)
	if code != 0 {
		c.t.Fatalf("%s %q ends with %d:\n%s", program, args, code, out)
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
