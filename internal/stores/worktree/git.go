package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// safe are the options of every command: what a configuration could start, off.
var safe = []string{
	"-c", "core.hooksPath=/dev/null",
	"-c", "core.fsmonitor=false",
	"-c", "core.pager=cat",
	"-c", "core.untrackedCache=false",
	"-c", "core.attributesFile=/dev/null",
	"-c", "core.autocrlf=false",
	"-c", "core.safecrlf=false",
	"-c", "core.fileMode=true",
	"-c", "core.symlinks=true",
	"-c", "core.quotePath=false",
	"-c", "protocol.allow=never",
	"-c", "submodule.recurse=false",
	"-c", "gc.auto=0",
	"-c", "maintenance.auto=false",
	"-c", "credential.helper=",
	"-c", "commit.gpgSign=false",
	"-c", "safe.directory=*", // it protects from programs in the configuration, which are off
}

// environ is the whole environment of git: nothing of the daemon's but PATH.
func environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "GIT_EDITOR=false", "GIT_PAGER=cat",
		"GIT_ALLOW_PROTOCOL=", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0",
	}
}

// strictNames are variables with which git refuses names that it would take for .git on other
// systems, such as .GIT, git~1, or .git with an invisible character.
var strictNames = []string{
	"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=core.protectHFS", "GIT_CONFIG_VALUE_0=true",
	"GIT_CONFIG_KEY_1=core.protectNTFS", "GIT_CONFIG_VALUE_1=true",
}

// strict returns a git that refuses such names.
func (g git) strict() git {
	g.environ = append(slices.Clone(g.environ), strictNames...)
	return g
}

// A git runs commands in one directory.
type git struct {
	dir     string   // of the commands, and the working tree if gitDir isn't ""
	gitDir  string   // "": found from dir
	environ []string // further variables
}

// A CommandError is a command of git that failed.
type CommandError struct {
	Command string
	Stderr  string // the end of what it printed
	Err     error
}

func (e *CommandError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("git %s: %v", e.Command, e.Err)
	}
	return fmt.Sprintf("git %s: %s", e.Command, e.Stderr)
}

func (e *CommandError) Unwrap() error { return e.Err }

func (g git) command(ctx context.Context, stdin []byte, args ...string) *exec.Cmd {
	all := append([]string{}, safe...)
	if g.gitDir != "" {
		all = append(all, "--git-dir="+g.gitDir, "--work-tree="+g.dir)
	}
	cmd := exec.CommandContext(ctx, "git", append(all, args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = g.dir, append(environ(), g.environ...), time.Second
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	return cmd
}

// run returns the output of a command.
func (g git) run(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := g.command(ctx, stdin, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, commandError(ctx, args[0], &stderr, err)
	}
	return stdout.Bytes(), nil
}

// errTooLong says that a command printed more than it may.
var errTooLong = errors.New("output is too long")

// runAtMost returns the output of a command that prints at most a number of bytes.
func (g git) runAtMost(ctx context.Context, most int64, args ...string) ([]byte, error) {
	var text bytes.Buffer
	if _, err := g.runTo(ctx, &text, most, args...); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// maxStderr limits what an error quotes.
const maxStderr = 2000

func commandError(ctx context.Context, command string, stderr *bytes.Buffer, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	for _, lack := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if strings.Contains(strings.ToLower(stderr.String()), lack.Error()) {
			err = lack // git prints the error in these words, with LC_ALL=C
		}
	}
	words := strings.TrimSpace(strings.ToValidUTF8(stderr.String(), "?"))
	if len(words) > maxStderr {
		words = strings.ToValidUTF8(words[:maxStderr], "") + "..."
	}
	return &CommandError{Command: command, Stderr: words, Err: err}
}

// own makes a git directory of our own for a working tree, with the objects of a repository.
// The caller removes it.
func (s Store) own(ctx context.Context, r repository, tree string) (git, func(), error) {
	if err := os.MkdirAll(s.Records, 0o700); err != nil {
		return git{}, nil, fmt.Errorf("make directory for git: %w", err)
	}
	dir, err := os.MkdirTemp(s.Records, "git-*")
	if err != nil {
		return git{}, nil, fmt.Errorf("make directory for git: %w", err)
	}
	remove := func() { _ = os.RemoveAll(dir) } // what stays is removed by Sweep
	g := git{dir: tree, gitDir: dir}
	if err := r.lend(ctx, git{dir: s.Records}, dir, true); err != nil {
		remove()
		return git{}, nil, err
	}
	return g, remove, nil
}

// lend makes an empty repository that has the objects of another one.
func (r repository) lend(ctx context.Context, g git, dir string, bare bool, more ...string) error {
	args := append([]string{"init", "-q", "--template=", "--object-format=" + r.format}, more...)
	gitDir := filepath.Join(dir, ".git")
	if bare {
		args, gitDir = append(args, "--bare"), dir
	}
	if _, err := g.run(ctx, nil, append(args, "--", dir)...); err != nil {
		return err
	}
	if bare { // a working tree is named by each command
		if err := os.WriteFile(filepath.Join(gitDir, "config"), r.ownConfig(), 0o600); err != nil {
			return err
		}
	}
	info := filepath.Join(gitDir, "objects", "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(info, "alternates"), []byte(r.objects+"\n"), 0o600); err != nil {
		return err
	}
	return copyIfThere(filepath.Join(r.common, "shallow"), filepath.Join(gitDir, "shallow"))
}

// ownConfig is the configuration of a git directory of our own.
func (r repository) ownConfig() []byte {
	if r.format == "sha1" {
		return []byte("[core]\n\trepositoryformatversion = 0\n")
	}
	return []byte("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = " + r.format + "\n")
}

// copyIfThere copies a regular file with its modification time, if there is one. Git compares the
// content of a file that changed in the second of its index, or later: a copy with a time of its
// own would hide such a change.
func copyIfThere(from, to string) error {
	f, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat() // before reading: an older time compares more
	if err != nil {
		return err
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		return err
	}
	return os.Chtimes(to, time.Time{}, info.ModTime())
}
