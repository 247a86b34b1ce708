package gitfiles

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// An answer is what git obeys in a repository.
type answer struct {
	files []string
	late  bool // git gave no answer in time, so there may be more
}

// maxAsked limits the repositories about which git is asked, and parallel how many commands run
// at a time. Of further repositories, the usual files count.
const (
	maxAsked = 64
	parallel = 4
)

// ask returns what git obeys in each of some repositories.
func ask(ctx context.Context, repositories []repository) []answer {
	answers := make([]answer, len(repositories))
	_, err := exec.LookPath("git")
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, r := range repositories {
		answers[i].files = usualFiles(r)
		if err != nil || i >= maxAsked || r.dir == "" {
			continue
		}
		group.Go(func() error {
			more := askAbout(ctx, r)
			answers[i].files, answers[i].late = append(answers[i].files, more.files...), more.late
			return nil
		})
	}
	_ = group.Wait() // nothing fails
	return answers
}

// usualFiles are what git obeys in a repository without a configuration. It counts also where
// git gives no answer, as about a configuration that it can't read.
func usualFiles(r repository) (files []string) {
	if r.dir == "" {
		return nil
	}
	for _, name := range []string{"commondir", "config.worktree", "config", "hooks", "info/attributes"} {
		if files = append(files, filepath.Join(r.dir, name)); r.linked && name == "config.worktree" {
			break // the others are those of the main working tree
		}
	}
	return files
}

// askAbout asks git what it obeys in a repository: where its parts are, which configuration
// files it reads, which ones these include, whatever the condition, and which files of a
// project the values in them name.
func askAbout(ctx context.Context, r repository) (a answer) {
	g := git{dir: r.dir, options: []string{"--git-dir=" + r.dir, "--work-tree=" + r.tree}}
	values, late := g.configuration(ctx)
	tree := r.tree
	for _, v := range values {
		if v.key == "core.worktree" {
			tree = expand(v.value, r.dir)
		}
	}
	a.files = namedFiles(values, tree)
	if a.late = late; !late {
		parts, late := g.parts(ctx, tree == r.tree)
		a.files, a.late = append(a.files, parts...), late
	}
	return a
}

// parts asks git where the parts of a repository are. Hooks may be below its working tree, if
// that is known.
func (g git) parts(ctx context.Context, knowsTree bool) (files []string, late bool) {
	text, err := g.run(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir",
		"--git-path", "config", "--git-path", "config.worktree", "--git-path", "info/attributes", "--git-path", "hooks")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if err != nil || len(lines) != 5 { // git can't read the configuration, or a path has a line break
		return nil, isLate(err)
	}
	files = append(lines[1:4], filepath.Join(lines[0], "hooks"))
	if knowsTree {
		files = append(files, filepath.Clean(lines[4]))
	}
	return files, false
}

// userFiles returns the configuration files of the user. If no repository was asked about, it
// asks which files they include and name.
func userFiles(ctx context.Context, asked bool) (files []string) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	directory := os.Getenv("XDG_CONFIG_HOME")
	if directory == "" {
		directory = filepath.Join(home, ".config")
	}
	files = []string{filepath.Join(home, ".gitconfig"), filepath.Join(directory, "git", "config"), filepath.Join(directory, "git", "attributes")}
	if asked || !slices.ContainsFunc(files, exists) {
		return files
	}
	values, _ := git{dir: "/"}.configuration(ctx)
	return append(files, namedFiles(values, "")...)
}

// A git runs commands that only read, and start no other program.
type git struct {
	dir     string
	options []string
}

// questionTimeout limits the time of one command: a configuration may be a pipe. maxOutput
// limits what it prints.
const (
	questionTimeout = 5 * time.Second
	maxOutput       = 4 << 20
)

// run returns what a command printed. Git reads the configuration of the user, which is what
// the user's git obeys, and no other variables of the daemon.
func (g git) run(ctx context.Context, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, questionTimeout)
	defer stop()
	all := append([]string{"--no-pager", "-c", "core.fsmonitor=false", "-c", "safe.directory=*"}, g.options...)
	cmd := exec.CommandContext(ctx, "git", append(all, args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = g.dir, environ(), time.Second
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(stdout, maxOutput))
	if len(text) == maxOutput {
		stop()
	}
	if failed := cmd.Wait(); err == nil {
		err = failed
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return string(text), err
}

func isLate(err error) bool {
	return err == context.DeadlineExceeded || err == context.Canceled
}

func environ() []string {
	env := []string{"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=", "GIT_NO_LAZY_FETCH=1",
		"GIT_TRACE2=0", "GIT_TRACE2_EVENT=0", "GIT_TRACE2_PERF=0"}
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
