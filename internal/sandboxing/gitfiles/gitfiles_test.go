package gitfiles_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/sandboxing/gitfiles"
)

// write makes a file, with the directories above it.
func write(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err = errors.Join(err, os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func runGit(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// newProject makes a repository, and a home directory without a configuration.
func newProject(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is missing, which is asked here: ", err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Join(t.TempDir(), "home"))
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	runGit(t, dir, "init", "-q", "-b", "main")
	return dir
}

// changesBy returns what Changes names after a change, as "made" or "changed" and a path below
// the directory, and why there may be more. The snapshot is stored between, as for a run.
func changesBy(t *testing.T, dir string, change func()) (named, unsearched []string) {
	t.Helper()
	text, err := json.Marshal(gitfiles.Take([]string{dir}))
	if err != nil {
		t.Fatal(err)
	}
	change()
	var s gitfiles.Snapshot
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	changes, unsearched := s.Changes()
	for _, c := range changes {
		verb := "changed "
		if c.Made {
			verb = "made "
		}
		named = append(named, verb+strings.TrimPrefix(c.Path, dir+"/"))
	}
	return named, unsearched
}

func TestWhatGitObeysIsNamedWhenItChanges(t *testing.T) {
	for name, c := range map[string]struct {
		before, after map[string]string // files with their content
		want          []string
	}{
		"nothing":                       {nil, map[string]string{"file": "y", ".git/refs/heads/other": "x", ".gitignore": "x", "dir/HEAD": "x"}, nil},
		"a configuration":               {nil, map[string]string{".git/config": "[a]\n\tb = c\n"}, []string{"changed .git/config"}},
		"a configuration of a tree":     {nil, map[string]string{".git/config.worktree": "x"}, []string{"made .git/config.worktree"}},
		"a pointer to another":          {nil, map[string]string{".git/commondir": "/x"}, []string{"made .git/commondir"}},
		"attributes":                    {nil, map[string]string{".git/info/attributes": "x"}, []string{"made .git/info/attributes"}},
		"a hook":                        {nil, map[string]string{".git/hooks/pre-commit": "x"}, []string{"made .git/hooks"}},
		"an example of a hook":          {nil, map[string]string{".git/hooks/pre-commit.sample": "x"}, nil},
		"another hook":                  {map[string]string{".git/hooks/pre-commit": "x"}, map[string]string{".git/hooks/pre-push": "x"}, []string{"changed .git/hooks"}},
		"a file to include":             {map[string]string{".git/config": "[include]\n\tpath = ../inc\n"}, map[string]string{"inc": "x"}, []string{"made inc"}},
		"a file to include in one":      {map[string]string{".git/config": "[include]\n\tpath = ../inc\n", "inc": "[include]\n\tpath = sub/inc\n"}, map[string]string{"sub/inc": "x"}, []string{"made sub/inc"}},
		"a file to include on a branch": {map[string]string{".git/config": "[includeIf \"onbranch:x\"]\n\tpath = ../inc\n"}, map[string]string{"inc": "x"}, []string{"made inc"}},
		"an included file of no use":    {map[string]string{".git/config": "[include]\n\tpath = ../inc\n", "inc": "broken"}, map[string]string{"inc": "[a]\nb=c\n"}, []string{"changed inc"}},
		"hooks of the project":          {map[string]string{".git/config": "[core]\n\thooksPath = tools/hooks\n"}, map[string]string{"tools/hooks/pre-push": "x"}, []string{"made tools/hooks"}},
		"attributes of the project":     {map[string]string{".git/config": "[core]\n\tattributesFile = attributes\n"}, map[string]string{"attributes": "x"}, []string{"made attributes"}},
		"a template of repositories":    {map[string]string{".git/config": "[init]\n\ttemplateDir = template\n"}, map[string]string{"template/hooks/pre-push": "x"}, []string{"made template/hooks"}},
		"three directories":             {nil, map[string]string{"a/head/x": "x", "a/objects/x": "", "a/refs/x": ""}, nil},
		"a program of the project":      {map[string]string{".git/config": "[alias]\n\tx = \"!sh ./tools/x 1\"\n", "tools/x": "a"}, map[string]string{"tools/x": "b"}, []string{"changed tools/x"}},
		"a repository below":            {nil, map[string]string{"a/b/.git/HEAD": "x", "a/b/.git/config": "x"}, []string{"made a/b/.git"}},
		"a pointer below":               {nil, map[string]string{"a/.git": "gitdir: ../.git"}, []string{"made a/.git"}},
		"a pointer that changes":        {map[string]string{"a/.git": "gitdir: /x"}, map[string]string{"a/.git": "gitdir: /y"}, []string{"changed a/.git"}},
		"a bare repository":             {nil, map[string]string{"a/HEAD": "x", "a/objects/x": "", "a/refs/x": ""}, []string{"made a"}},
		"a part of one":                 {nil, map[string]string{"a/HEAD": "x", "a/commondir": "x"}, []string{"made a"}},
		"another spelling":              {nil, map[string]string{"a/.Git/config": "x"}, []string{"made a/.Git"}},
		"a submodule":                   {nil, map[string]string{".git/modules/a/b/HEAD": "x", ".git/modules/a/b/objects/x": "", ".git/modules/a/b/refs/x": ""}, []string{"made .git/modules/a/b"}},
		"a name that is not UTF-8":      {nil, map[string]string{"\xff/.git/config": "x"}, []string{`made "DIR/\xff/.git"`}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newProject(t)
			for path, text := range c.before {
				write(t, filepath.Join(dir, path), text)
			}
			named, unsearched := changesBy(t, dir, func() {
				for path, text := range c.after {
					write(t, filepath.Join(dir, path), text)
				}
			})
			for i := range c.want {
				c.want[i] = strings.ReplaceAll(c.want[i], "DIR", dir)
			}
			if !slices.Equal(named, c.want) || unsearched != nil {
				t.Errorf("named %q and %q; want %q and nothing", named, unsearched, c.want)
			}
			if named, unsearched := changesBy(t, dir, func() {}); named != nil || unsearched != nil {
				t.Errorf("named %q and %q again; want nothing", named, unsearched)
			}
		})
	}
}

// The configuration of the user may name files of a project, too.
func TestFilesThatTheConfigurationOfTheUserNamesCount(t *testing.T) {
	for _, repository := range []bool{true, false} {
		t.Run(fmt.Sprint(repository), func(t *testing.T) {
			dir := newProject(t)
			if !repository {
				if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
					t.Fatal(err)
				}
			}
			write(t, filepath.Join(os.Getenv("HOME"), ".gitconfig"), "[include]\n\tpath = "+dir+"/inc\n")
			named, _ := changesBy(t, dir, func() { write(t, filepath.Join(dir, "inc"), "x") })
			if !slices.Equal(named, []string{"made inc"}) {
				t.Errorf("named %q; want inc", named)
			}
		})
	}
}

// Asking git about a hostile repository starts nothing that it names.
func TestAskingGitRunsNothing(t *testing.T) {
	dir := newProject(t)
	marker := filepath.Join(t.TempDir(), "marker")
	program := filepath.Join(t.TempDir(), "program")
	write(t, program, "#!/bin/sh\ntouch "+marker+"\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	config := "[extensions]\n\tpartialClone = evil\n[remote \"evil\"]\n\turl = " + dir + "\n\tpromisor = true\n\tuploadpack = " + program + "\n"
	for _, section := range []string{"core\"fsmonitor", "core\"pager", "core\"sshCommand", "core\"editor", "pager\"config", "alias\"config", "alias\"rev-parse"} {
		name, key, _ := strings.Cut(section, "\"")
		config += "[" + name + "]\n\t" + key + " = " + program + "\n"
	}
	write(t, filepath.Join(dir, ".git", "config"), "[core]\n\trepositoryformatversion = 1\n"+config)
	write(t, filepath.Join(dir, ".git", "HEAD"), strings.Repeat("1", 40)+"\n")
	for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction"} {
		if err := os.Symlink(program, filepath.Join(dir, ".git", "hooks", hook)); err != nil {
			t.Fatal(err)
		}
	}
	changesBy(t, dir, func() { write(t, filepath.Join(dir, ".git", "config.worktree"), config) })
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program of the repository was run")
	}
	status := exec.Command("git", "status")
	status.Dir = dir
	_ = status.Run() // HEAD names no commit
	if _, err := os.Stat(marker); err != nil {
		t.Errorf("git status runs no program of the repository, so this test proves nothing: %v", err)
	}
}

// A configuration that includes a pipe has git wait.
func TestAnAnswerThatComesTooLateIsNamed(t *testing.T) {
	dir := newProject(t)
	write(t, filepath.Join(dir, ".git", "config"), "[include]\n\tpath = ../pipe\n")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	named, unsearched := changesBy(t, dir, func() { write(t, filepath.Join(dir, ".git", "commondir"), "x") })
	if !slices.Equal(named, []string{"made .git/commondir"}) || len(unsearched) != 1 || !strings.Contains(unsearched[0], "in time") {
		t.Errorf("named %q and %q", named, unsearched)
	}
}

// Only the tops and their submodules can be read-only: an agent may remove other repositories.
func TestRepositoriesAtTheTopAndTheirSubmodulesCanBeProtected(t *testing.T) {
	dir, library := newProject(t), newProject(t)
	runGit(t, library, "commit", "-q", "--allow-empty", "-m", "library")
	runGit(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library, "libs/a")
	runGit(t, dir, "init", "-q", "other")
	runGit(t, dir, "config", "core.hooksPath", "hooks")
	write(t, filepath.Join(dir, "hooks", "pre-push"), "x")
	got := map[string]bool{}
	for _, d := range gitfiles.Take([]string{dir}).Protectable() {
		for _, path := range d.Files {
			got[strings.TrimPrefix(path, dir+"/")] = true
		}
	}
	want := map[string]bool{".git/config": true, ".git/hooks": true, ".git/modules/libs/a/config": true, ".git/modules/libs/a/hooks": true}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("can be protected: %v; want %v", got, want)
	}
}

// An agent can't hide a repository behind more of them than are looked at, or behind a
// directory that can't be read.
func TestASearchThatIsNotCompleteIsNamed(t *testing.T) {
	dir := newProject(t)
	_, unsearched := changesBy(t, dir, func() {
		for n := range 1001 {
			write(t, filepath.Join(dir, fmt.Sprint("r", n), ".git"), "gitdir: ../.git\n")
		}
	})
	if len(unsearched) != 1 || !strings.Contains(unsearched[0], "more than 1000 repositories") {
		t.Errorf("not searched: %q", unsearched)
	}
}

// asNobody runs the test that calls it again, as a user whom permissions bind.
func asNobody(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for up := dir; up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "test")
	if err := os.WriteFile(binary, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func TestADirectoryThatCannotBeReadAnyMoreIsNamed(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	dir := newProject(t)
	closed := filepath.Join(dir, "closed")
	write(t, filepath.Join(closed, "file"), "x")
	t.Cleanup(func() { _ = os.Chmod(closed, 0o755) })
	named, unsearched := changesBy(t, dir, func() {
		if err := os.Chmod(closed, 0); err != nil {
			t.Fatal(err)
		}
	})
	if named != nil || !slices.Equal(unsearched, []string{closed + " can't be read"}) {
		t.Errorf("named %q and %q", named, unsearched)
	}
	if named, unsearched := changesBy(t, dir, func() {}); named != nil || unsearched != nil {
		t.Errorf("named %q and %q again; want nothing", named, unsearched)
	}
}

func TestWhatIsAcceptedIsNotNamedAgain(t *testing.T) {
	dir := newProject(t)
	stored := gitfiles.Snapshot{Roots: []string{filepath.Dir(dir)}}
	stored.Accept()
	s := gitfiles.Take([]string{dir})
	write(t, filepath.Join(dir, ".git", "commondir"), "x")
	write(t, filepath.Join(dir, "a", ".git", "HEAD"), "x")
	if changes, _ := s.Changes(); len(changes) != 2 {
		t.Errorf("changes %v; want 2", changes)
	}
	s.Accept()
	if changes, unsearched := s.Changes(); changes != nil || unsearched != nil {
		t.Errorf("changes %v, %v after Accept; want none", changes, unsearched)
	}
	write(t, filepath.Join(dir, "a", ".git", "config"), "x")
	if changes, _ := s.Changes(); len(changes) != 1 || changes[0].Path != filepath.Join(dir, "a", ".git", "config") {
		t.Errorf("changes %v; want the configuration of the new repository", changes)
	}
}
