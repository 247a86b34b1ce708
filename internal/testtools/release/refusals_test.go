package release_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/testtools/slowtest"
)

const version = "v0.0.1-rc.1"

// withSection commits a section of the changelog for the version, as each release has.
func withSection(t *testing.T) *checkout {
	t.Helper()
	c := copyOfTree(t)
	before := read(t, filepath.Join(c.dir, "CHANGELOG.md"))
	c.write("CHANGELOG.md", strings.Replace(before, "\n## ", "\n## "+version+" - 2026-03-09\n\n- The first.\n\n## ", 1))
	c.commit("Describe " + version)
	return c
}

// Each refusal is one line that says why.
func TestWhatCannotBeRightIsRefused(t *testing.T) {
	slowtest.SkipShort(t, "it copies the tree")
	t.Parallel()
	c := withSection(t)
	for what, refuse := range map[string]func(t *testing.T, c *checkout){
		"a path that is none": refusePaths, "a directory without a release": refuseDirectories,
		"a build beside another": refuseBeside, "a build that cannot be right": refuseBuilds,
	} {
		t.Run(what, func(t *testing.T) { refuse(t, c.with(t)) })
	}
}

// refuseBuilds leaves dist as it was each time.
func refuseBuilds(t *testing.T, c *checkout) {
	kept := filepath.Join(c.dir, "dist/kept")
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		t.Fatal(err)
	}
	c.write("dist/kept", "the last release")
	refused := func(code int, why string, env []string, args ...string) {
		t.Helper()
		out, got := c.with(t, env...).run("release/build", args...)
		if got != code || strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, "release/build: ") || !strings.Contains(out, why) {
			t.Errorf("%v release/build %q ends with %d and says %q; want %d and one line with %q", env, args, got, out, code, why)
		}
		if _, err := os.Stat(filepath.Join(c.dir, "dist.tmp")); err == nil {
			t.Errorf("release/build %q leaves dist.tmp", args)
		}
		if text := read(t, kept); text != "the last release" {
			t.Errorf("release/build %q changes dist: %q", args, text)
		}
	}
	for _, no := range []string{
		"v1", "1.0.0", "v1.0", "v01.0.0", "v1.0.0-rc1", "v1.0.0-rc.01", "v1.0.0-beta.1", "../v1.0.0", "v1.0.0 ", "v1.0.0\nv1.0.0", "",
	} {
		refused(2, "is no version; type one such as", nil, no)
	}
	refused(2, "is no version", nil)
	refused(2, "is no version", nil, version, version)
	refused(2, `no section "## v0.0.1"`, nil, "v0.0.1")
	refused(2, `no section "## v0.0.1-rc.11"`, nil, "v0.0.1-rc.11")
	refused(1, "RELEASE_KEY names /nonexistent/key, which is no file", []string{"RELEASE_KEY=/nonexistent/key"}, version)

	tools := onlyTools(t, "bash", "git", "tar", "gzip", "sha256sum", "dirname", "cat", "env")
	refused(1, "go is not installed", []string{"PATH=" + tools}, version)

	c.write("new.go", "package p\n")
	refused(2, "changes that are not committed, such as new.go", nil, version)
	if err := os.Remove(filepath.Join(c.dir, "new.go")); err != nil {
		t.Fatal(err)
	}
	c.write("LICENSE", "mine\n")
	refused(2, "changes that are not committed, such as LICENSE", nil, version)
	c.must("git", "checkout", "-q", "LICENSE")
}

func refuseBeside(t *testing.T, c *checkout) {
	other := filepath.Join(c.dir, "dist.tmp")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	out, code := c.run("release/build", version)
	if code != 1 || !strings.Contains(out, "dist.tmp is there") {
		t.Errorf("release/build ends with %d and says %q; want 1 and the reason", code, out)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("release/build removes the directory of another build: %v", err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
}

func refuseDirectories(t *testing.T, c *checkout) {
	for _, args := range [][]string{nil, {"nope"}, {"docs", "a", "b"}, {"--unsigned"}} {
		if out, code := c.run("release/verify", args...); code != 2 || strings.Count(out, "\n") != 1 {
			t.Errorf("release/verify %q ends with %d and says %q; want 2 and one line", args, code, out)
		}
	}
	if out, code := c.run("release/verify", "docs"); code != 1 || !strings.Contains(out, "SHA256SUMS: is missing") {
		t.Errorf("release/verify docs ends with %d and says %q; want 1 and what is missing", code, out)
	}
}

// onlyTools is a PATH with some programs of this one.
func onlyTools(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	here := &checkout{t: t, dir: "."}
	for _, name := range names {
		path := strings.TrimSpace(here.must("sh", "-c", "command -v "+name))
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
