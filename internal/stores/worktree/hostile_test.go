package worktree_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailboxd/internal/stores/worktree"
)

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

// plant makes a program that writes a marker, and returns its path.
func plant(t *testing.T, marker string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "planted")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $*\" >> "+marker+"\ncat\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return program
}

// hostileConfig names a program everywhere where a configuration of git can.
func hostileConfig(program string) string {
	return `[core]
	repositoryformatversion = 1
	fsmonitor = ` + program + `
	hooksPath = ` + filepath.Dir(program) + `/hooks
	pager = ` + program + `
	editor = ` + program + `
	sshCommand = ` + program + `
	gitProxy = ` + program + `
	askPass = ` + program + `
	alternateRefsCommand = ` + program + `
[diff]
	external = ` + program + `
[diff "evil"]
	textconv = ` + program + `
	command = ` + program + `
[filter "evil"]
	clean = ` + program + `
	smudge = ` + program + `
	process = ` + program + `
	required = true
[merge "evil"]
	driver = ` + program + `
[alias]
	rev-parse = !` + program + `
	apply = !` + program + `
	status = !` + program + `
[gpg]
	program = ` + program + `
[commit]
	gpgSign = true
[credential]
	helper = ` + program + `
[uploadpack]
	packObjectsHook = ` + program + `
[extensions]
	partialClone = evil
	worktreeConfig = true
[remote "evil"]
	url = /
	promisor = true
	uploadpack = ` + program + `
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[include]
	path = included
[url "ext::` + program + `"]
	insteadOf = /
`
}

// plantHooks writes every hook that a command of ours could start.
func plantHooks(t *testing.T, dir, program string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{
		"post-checkout", "post-index-change", "reference-transaction", "pre-commit", "post-commit",
		"applypatch-msg", "pre-applypatch", "post-applypatch", "post-merge", "fsmonitor-watchman", "post-rewrite",
	} {
		if err := os.Symlink(program, filepath.Join(dir, hook)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
}

// plantAll makes a repository hostile: its configuration, its hooks and its attributes.
func plantAll(t *testing.T, gitDir, tree, program string) {
	t.Helper()
	write(t, filepath.Join(gitDir, "config"), hostileConfig(program))
	write(t, filepath.Join(gitDir, "included"), "[core]\n\tfsmonitor = "+program+"\n")
	write(t, filepath.Join(gitDir, "config.worktree"), hostileConfig(program))
	write(t, filepath.Join(gitDir, "info/attributes"), "* filter=evil diff=evil merge=evil\n")
	plantHooks(t, filepath.Join(gitDir, "hooks"), program)
	plantHooks(t, filepath.Join(filepath.Dir(program), "hooks"), program)
	write(t, filepath.Join(tree, ".gitattributes"), "* filter=evil diff=evil merge=evil\n")
}

func TestNothingPlantedInACloneIsRun(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	marker := filepath.Join(t.TempDir(), "marker")
	program := plant(t, marker)
	plantAll(t, filepath.Join(c.Dir, ".git"), c.Dir, program)
	nested := filepath.Join(c.Dir, "nested")
	write(t, filepath.Join(nested, "file"), "x\n")
	gitIn(t, nested, "init", "-q")
	gitIn(t, nested, "add", "-A")
	gitIn(t, nested, "commit", "-q", "-m", "nested")
	plantAll(t, filepath.Join(nested, ".git"), nested, program)
	write(t, filepath.Join(c.Dir, "README.md"), "changed\n")
	if err := os.Remove(marker); err == nil {
		t.Fatal("the preparation ran the planted program")
	}
	d := p.diff(c)
	p.apply(d)
	if _, err := p.store.FetchBranch(t.Context(), p.dir, d.Patch, worktree.Commit{Parent: c.Commit, Branch: c.Branch, Time: time.Unix(1e9, 0)}); err != nil {
		t.Error(err)
	}
	p.clone() // of a project that has the planted attributes now
	if text, err := os.ReadFile(marker); err == nil {
		t.Errorf("a planted program was run:\n%s", text)
	}
	control := exec.Command("git", "status") // which runs what is planted
	control.Dir = c.Dir
	_ = control.Run() // the planted filter is a poor one
	if _, err := os.ReadFile(marker); err != nil {
		t.Errorf("git status in the clone runs no planted program, so this test proves nothing: %v", err)
	}
}

func TestNothingInTheSubmoduleOfACloneIsRun(t *testing.T) {
	p, library := newProject(t), newProject(t)
	p.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", library.dir, "library")
	p.git("commit", "-q", "-m", "submodule")
	c := p.clone()
	marker := filepath.Join(t.TempDir(), "marker")
	program := plant(t, marker)
	inside := filepath.Join(c.Dir, "library")
	write(t, filepath.Join(inside, "file"), "x\n")
	gitIn(t, inside, "init", "-q")
	gitIn(t, inside, "add", "-A")
	gitIn(t, inside, "commit", "-q", "-m", "other")
	plantAll(t, filepath.Join(inside, ".git"), inside, program)
	d := p.diff(c)
	if len(d.Patch) > 0 || len(d.Summary.Skipped) != 1 {
		t.Errorf("patch %q, skipped %v; want the submodule skipped", d.Patch, d.Summary.Skipped)
	}
	if text, err := os.ReadFile(marker); err == nil {
		t.Errorf("a planted program was run:\n%s", text)
	}
}

func TestNothingPlantedInTheSourceIsRun(t *testing.T) {
	p := newProject(t)
	marker := filepath.Join(t.TempDir(), "marker")
	program := plant(t, marker)
	plantAll(t, filepath.Join(p.dir, ".git"), p.dir, program)
	home := t.TempDir()
	write(t, filepath.Join(home, ".gitconfig"), hostileConfig(program))
	t.Setenv("HOME", home)
	t.Setenv("GIT_EXTERNAL_DIFF", program)
	t.Setenv("GIT_DIR", "/nonexistent")
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
	t.Setenv("GIT_CONFIG_VALUE_0", program)
	c := p.clone()
	write(t, filepath.Join(c.Dir, "README.md"), "changed\n")
	d := p.diff(c)
	p.apply(d)
	if _, err := p.store.FetchBranch(t.Context(), p.dir, d.Patch, worktree.Commit{Parent: c.Commit, Branch: c.Branch, Time: time.Unix(1e9, 0)}); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(marker); err == nil {
		t.Errorf("a planted program was run:\n%s", text)
	}
}

// Git opens .gitignore and .gitattributes of every directory, and files of nested repositories.
func TestGitDoesNotLookAtAPipe(t *testing.T) {
	pipe := func(t *testing.T, path string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mkfifo(t, path)
	}
	link := func(target string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) { write(t, path, text) }
	}
	for name, plant := range map[string]map[string]func(*testing.T, string){
		"ignored files":          {".gitignore": pipe},
		"attributes":             {"src/.gitattributes": pipe},
		"HEAD":                   {"nested/.git/HEAD": pipe},
		"reference":              {"nested/.git/refs/heads/other": pipe},
		"unlimited commondir":    {"nested/.git/commondir": link("/dev/zero")},
		"HEAD that a file names": {"src/.git": text("gitdir: ../evil\n"), "evil/HEAD": pipe},
		"reference elsewhere":    {"nested/.git/commondir": text("../../evil\n"), "evil/refs/heads/main": pipe},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			c := p.clone()
			write(t, filepath.Join(c.Dir, "src", "file"), "x\n")
			gitIn(t, c.Dir, "init", "-q", "nested")
			for path, make := range plant {
				path = filepath.Join(c.Dir, path)
				if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				make(t, path)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			d, err := p.store.Diff(ctx, c)
			if _, ok := errors.AsType[*worktree.UnsafeError](err); !ok {
				t.Errorf("Diff = %q, %v; want an UnsafeError", d.Patch, err)
			}
		})
	}
}

// A record that lost its fields would have gc remove what is above an empty path.
func TestARecordWithoutADirectoryRemovesNothing(t *testing.T) {
	p := newProject(t)
	c := p.clone()
	write(t, filepath.Join(p.store.Records, c.Run+".json"), "{}\n")
	if c, ok, err := p.store.Open(c.Run); err == nil {
		t.Errorf("Open = %+v, %v; want an error", c, ok)
	}
}

// A repository may name a program that fetches objects that it lacks. Versions of git before
// 2.45, without GIT_NO_LAZY_FETCH, would run it.
func TestNoMissingObjectIsFetched(t *testing.T) {
	p := newProject(t)
	marker := filepath.Join(t.TempDir(), "marker")
	write(t, filepath.Join(p.dir, ".git", "config"), hostileConfig(plant(t, marker)))
	write(t, filepath.Join(p.dir, ".git", "HEAD"), strings.Repeat("1", 40)+"\n")
	_, err := p.store.Create(t.Context(), worktree.Request{Run: "run", Task: "t", Source: p.dir})
	if _, ok := errors.AsType[*worktree.RepositoryError](err); !ok {
		t.Errorf("Create = %v; want a RepositoryError", err)
	}
	if text, err := os.ReadFile(marker); err == nil {
		t.Errorf("a planted program was run:\n%s", text)
	}
}
