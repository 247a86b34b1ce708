package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// A repository is the source of a clone.
type repository struct {
	top     string // of the working tree
	prefix  string // of the directory in it; "" or with a final slash
	gitDir  string
	common  string // the git directory of the main working tree
	objects string
	format  string // of its hashes
}

// find returns the repository that a directory is part of.
func find(ctx context.Context, dir string) (repository, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return repository{}, &RepositoryError{dir, "the program git is not installed"}
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return repository{}, &RepositoryError{dir, err.Error()}
	}
	g := git{dir: resolved}
	text, err := g.run(ctx, nil, "rev-parse", "--path-format=absolute", "--show-object-format",
		"--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--git-path", "objects", "--show-prefix")
	if failed, ok := errors.AsType[*CommandError](err); ok {
		if ctx.Err() != nil {
			return repository{}, err
		}
		return repository{}, &RepositoryError{dir, "it is not in the working tree of a git repository: " + firstLine(failed.Error())}
	}
	if !utf8.Valid(text) {
		return repository{}, &RepositoryError{plain(dir), "a path of the repository is not UTF-8"}
	}
	lines := strings.SplitN(string(text), "\n", 7)
	if len(lines) != 7 || strings.Count(string(text), "\n") != 6 {
		return repository{}, &RepositoryError{dir, "a path of the repository contains a line break"}
	}
	return repository{
		format: lines[0], top: lines[1], gitDir: lines[2], common: lines[3], objects: lines[4], prefix: lines[5],
	}, err
}

// CheckSource returns a *RepositoryError if no clone can be made of the repository that a directory
// is part of: git is missing, there is no repository, or it has no commit yet.
func CheckSource(ctx context.Context, dir string) error {
	r, err := find(ctx, dir)
	if err == nil {
		_, err = r.head(ctx)
	}
	return err
}

// head returns the commit of HEAD.
func (r repository) head(ctx context.Context) (string, error) {
	text, err := git{dir: r.top}.run(ctx, nil, "rev-parse", "--verify", "-q", "HEAD^{commit}")
	if err != nil && ctx.Err() == nil {
		return "", &RepositoryError{r.top, "HEAD has no commit yet; commit something first"}
	}
	return string(bytes.TrimSpace(text)), err
}

// commit returns the commit that a name stands for; that of HEAD without a name.
func (r repository) commit(ctx context.Context, name string) (string, error) {
	if name == "" {
		return r.head(ctx)
	}
	text, err := git{dir: r.top}.run(ctx, nil, "rev-parse", "--verify", "-q", "--end-of-options", name+"^{commit}")
	if err != nil && ctx.Err() == nil {
		return "", &RepositoryError{r.top, fmt.Sprintf("it has no branch, tag or commit %q", name)}
	}
	return string(bytes.TrimSpace(text)), err
}

// indexFor gives a git directory of our own the index of the source, for its times and sizes
// of files, and then the content of a commit. Without a usable index, files are compared by
// content.
func (r repository) indexFor(ctx context.Context, own git, commit string) error {
	if err := copyIfThere(filepath.Join(r.gitDir, "index"), filepath.Join(own.gitDir, "index")); err == nil {
		if _, err = own.run(ctx, nil, "read-tree", "--reset", commit); err == nil {
			return nil
		}
	}
	_, err := own.run(ctx, nil, "read-tree", "--empty")
	if err == nil {
		_, err = own.run(ctx, nil, "read-tree", commit)
	}
	return err
}

// exclude returns the option for the ignored files that the source doesn't share.
func (r repository) exclude() string {
	return "core.excludesFile=" + filepath.Join(r.common, "info", "exclude")
}

// plain is a path for a record, which is JSON. A patch has every byte.
func plain(path string) string { return strings.ToValidUTF8(path, "\uFFFD") }

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// split splits output that ends each item with NUL.
func split(text []byte) []string {
	items := strings.Split(string(text), "\x00")
	return items[:len(items)-1]
}
