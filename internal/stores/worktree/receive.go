package worktree

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrLacks says that a bundle needs commits that the receiver doesn't have. The sender makes another
// one, for the commits that Commits returns.
var ErrLacks = errors.New("the bundle needs commits that are not here")

// receivedIn returns a repository of received commits.
func receivedIn(dir, format string) repository {
	return repository{top: dir, gitDir: dir, common: dir, objects: filepath.Join(dir, "objects"), format: format}
}

// repository returns the source repository of a clone.
func (c Clone) repository(ctx context.Context) (repository, error) {
	if !c.Received {
		return find(ctx, c.Source)
	}
	format := "sha1"
	if len(c.Commit) == sha256.Size*2 {
		format = "sha256"
	}
	r := receivedIn(c.Source, format)
	if _, err := os.Stat(r.objects); err != nil {
		return repository{}, &RepositoryError{c.Source, "the received commits are gone"}
	}
	return r, nil
}

// Receive takes a bundle into the repository of its name, which is made when the first one comes. The
// pack is checked object by object, with all that each object names. Git reads no configuration of
// the sender, and runs none of its programs.
func (s Store) Receive(ctx context.Context, b Bundle, file string) error {
	if err := b.Check(); err != nil {
		return err
	}
	r := receivedIn(filepath.Join(s.Received, b.Repository+".git"), b.Format)
	if err := r.makeReceived(ctx, b); err != nil {
		return err
	}
	now := time.Now()
	if err := os.Chtimes(r.top, now, now); err != nil { // the time of its last use
		return err
	}
	g := git{dir: r.top, gitDir: r.top}
	if _, err := g.run(ctx, nil, "rev-parse", "--verify", "-q", bundleRef(b.Commit)); err == nil {
		return nil
	}
	if b.Size == 0 {
		return fmt.Errorf("%w: %s", ErrLacks, b.Commit)
	}
	pack, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("read bundle: %w", err)
	}
	defer pack.Close()
	if err := g.takePack(ctx, b, pack); err != nil {
		return err
	}
	if _, err := g.run(ctx, nil, "update-ref", bundleRef(b.Commit), b.Commit); err != nil {
		return err
	}
	_, err = g.run(ctx, nil, "cat-file", "-e", b.Commit+"^{commit}")
	return err
}

// makeReceived makes an empty repository of received commits, whole or not at all.
func (r repository) makeReceived(ctx context.Context, b Bundle) error {
	if _, err := os.Stat(r.top); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(r.top), 0o700); err != nil {
		return fmt.Errorf("make directory for commits: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(r.top), "new-*")
	if err != nil {
		return fmt.Errorf("make directory for commits: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := (git{dir: dir}).run(ctx, nil, "init", "-q", "--bare", "--template=", "--object-format="+r.format, "--", dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "info"), 0o700); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"config": string(r.ownConfig()), "info/exclude": b.Exclude, "shallow": strings.Join(b.Shallow, "\n"),
	} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.TrimSuffix(text, "\n")+"\n"), 0o600); err != nil {
			return err
		}
	}
	if err := os.Rename(dir, r.top); err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make directory for commits: %w", err)
	}
	return nil
}

// takePack checks the head of a bundle, and gives the pack behind it to git.
func (g git) takePack(ctx context.Context, b Bundle, file io.Reader) error {
	hash := sha256.New()
	all := bufio.NewReaderSize(io.TeeReader(io.LimitReader(file, b.Size+1), hash), maxHeadLine)
	if err := g.readHead(ctx, b, all); err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	cmd := g.command(ctx, nil, "index-pack", "--stdin", "--fix-thin", "--strict", "--fsck-objects", fmt.Sprintf("--max-input-size=%d", b.Size))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return commandError(ctx, "index-pack", &stderr, err)
	}
	_, err = io.Copy(stdin, all)
	if err == nil && hex.EncodeToString(hash.Sum(nil)) != b.SHA256 {
		_ = cmd.Process.Kill() // before git sees the end of its input, and takes it
		err = &BundleError{"sha256", "is not that of the file"}
	}
	failed := errors.Join(stdin.Close(), cmd.Wait())
	if wrong, ok := errors.AsType[*BundleError](err); ok {
		return wrong
	}
	if failed = errors.Join(failed, err); failed != nil {
		return commandError(ctx, "index-pack", &stderr, failed)
	}
	return nil
}

// createReceived makes the clone of a run at a commit that another machine sent.
func (s Store) createReceived(ctx context.Context, q Request) (Clone, error) {
	b := *q.Received
	if err := b.Check(); err != nil {
		return Clone{}, err
	}
	r := receivedIn(filepath.Join(s.Received, b.Repository+".git"), b.Format)
	dir, err := s.dirFor(r)
	if err != nil {
		return Clone{}, err
	}
	c := Clone{
		Run: q.Run, Task: q.Task, Revision: q.Revision, Attempt: q.Attempt, Branch: Branch(q.Task),
		Dir:    filepath.Join(dir, q.Run, b.Name),
		Source: r.top, Objects: r.objects, Prefix: b.Prefix, Commit: b.Commit, Created: time.Now(), Received: true,
		Uncommitted: b.Uncommitted, Omitted: b.Omitted, Submodules: b.Submodules,
	}
	for _, name := range q.Copy {
		c.NotCopied = append(c.NotCopied, plain(name)+": stays at the machine that sent the commit")
	}
	err = s.make(ctx, r, &c, q.Patch)
	return c, err
}

// maxHead limits the lines before the pack of a bundle, and maxHeadLine the bytes of each, which has the first
// paragraph of a commit's message.
const (
	maxHead     = 1000
	maxHeadLine = 1 << 20
)

// readHead reads the lines of a bundle before its pack: it has the one commit, and needs only commits
// that are here.
func (g git) readHead(ctx context.Context, b Bundle, r *bufio.Reader) error {
	named := false
	for range maxHead {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return &BundleError{"file", "is not a git bundle"}
		}
		text := strings.TrimSuffix(string(line), "\n")
		needs, isNeed := strings.CutPrefix(text, "-")
		needs, _, _ = strings.Cut(needs, " ")
		switch {
		case text == "" && named:
			return nil
		case strings.HasPrefix(text, "# v") || strings.HasPrefix(text, "@object-format="):
		case isNeed && isHash(needs, b.Format):
			if _, err := g.run(ctx, nil, "cat-file", "-e", needs+"^{commit}"); err != nil {
				return fmt.Errorf("%w: %s", ErrLacks, needs)
			}
		case text == b.Commit+" "+bundleRef(b.Commit):
			named = true
		default:
			return &BundleError{"file", "has something else than the commit"}
		}
	}
	return &BundleError{"file", "names too many commits"}
}

// Commits returns the newest commits of each repository that were received, for BundleRequest.Have. It leaves out
// a repository that git can't read; Receive says why.
func (s Store) Commits(ctx context.Context, most int) (map[string][]string, error) {
	all := map[string][]string{}
	dirs, err := receivedDirs(s.Received)
	for _, dir := range dirs {
		g := git{dir: dir, gitDir: dir}
		text, err := g.run(ctx, nil, "for-each-ref", "--sort=-committerdate",
			fmt.Sprintf("--count=%d", most), "--format=%(objectname)", "refs/mailboxd/")
		if err != nil {
			continue
		}
		all[strings.TrimSuffix(filepath.Base(dir), ".git")] = strings.Fields(string(text))
	}
	return all, err
}

func receivedDirs(in string) (dirs []string, err error) {
	entries, err := os.ReadDir(in)
	if errors.Is(err, os.ErrNotExist) || in == "" {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".git") {
			dirs = append(dirs, filepath.Join(in, e.Name()))
		}
	}
	return dirs, err
}

// ForgetReceived removes the repositories that no clone needs and no bundle came to since a time.
func (s Store) ForgetReceived(before time.Time) error {
	dirs, err := receivedDirs(s.Received)
	if err != nil {
		return err
	}
	clones, err := s.Clones()
	if err != nil {
		return err
	}
	for _, pattern := range []string{"new-*", "*.gone"} { // what a program that was killed left
		left, _ := filepath.Glob(filepath.Join(s.Received, pattern)) // the pattern is right
		dirs = append(dirs, left...)
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		used := slices.ContainsFunc(clones, func(c Clone) bool { return c.Source == dir && c.Removed.IsZero() })
		if err != nil || info.ModTime().After(before) || used {
			continue
		}
		gone := strings.TrimSuffix(dir, ".gone") + ".gone" // half a repository is never used
		if err := errors.Join(os.Rename(dir, gone), os.RemoveAll(gone)); err != nil {
			return fmt.Errorf("remove received commits: %w", err)
		}
	}
	return nil
}
