package worktree

import (
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
	"unicode"
	"unicode/utf8"
)

// MaxBundle limits the bytes of a bundle, and maxExclude those of Bundle.Exclude.
const (
	MaxBundle  = 1 << 30
	maxExclude = 64 << 10
)

// A Bundle describes a commit of a repository on its way to another machine. What the commit needs
// and the receiver doesn't have is a file, a git bundle.
type Bundle struct {
	Repository  string   `json:"repository"` // names the repository of the sender: a hash
	Format      string   `json:"format"`     // of its hashes
	Commit      string   `json:"commit"`
	Name        string   `json:"name"`             // of the directory of a clone
	Prefix      string   `json:"prefix,omitempty"` // of the run's directory in it, with a final slash
	Shallow     []string `json:"shallow,omitempty"`
	Exclude     string   `json:"exclude,omitempty"`     // the ignored files that the repository doesn't share
	Uncommitted []string `json:"uncommitted,omitempty"` // files of the working tree that stay with the sender
	Omitted     int      `json:"omitted,omitempty"`
	Submodules  []string `json:"submodules,omitempty"`
	Size        int64    `json:"size,omitempty"` // of the file; 0: the receiver has the commit
	SHA256      string   `json:"sha256,omitempty"`

	Patch []byte `json:"-"` // of the sender alone: the work of BundleRequest.After
}

// A BundleRequest says which commit travels, and what its receiver has.
type BundleRequest struct {
	Source   string              // a directory in the working tree of a repository
	Base     string              // the branch, tag or commit; "": HEAD
	Resolved bool                // see Request
	Have     map[string][]string // commits that the receiver has, by Bundle.Repository; those that Source doesn't know are ignored
	File     string              // where the git bundle is written
	After    *Clone              // see Request; its commit travels
	Most     int64               // bytes of it; 0: MaxBundle

	// Sent reports whether a bundle was sent before, so that its file isn't written; nil: none was.
	Sent func(b Bundle) bool
}

// bundleRef names the one commit of a bundle.
func bundleRef(commit string) string { return "refs/mailboxd/" + commit }

// Bundle writes the git bundle of a commit of a source repository. It reads the source alone.
func (s Store) Bundle(ctx context.Context, q BundleRequest) (Bundle, error) {
	r, err := find(ctx, q.Source)
	if err != nil {
		return Bundle{}, err
	}
	if q.Resolved && filepath.Join(r.top, r.prefix) != filepath.Clean(q.Source) {
		return Bundle{}, &RepositoryError{q.Source, "it is a symbolic link now"}
	}
	var c Clone
	var patch []byte
	if c.Commit, patch, err = s.start(ctx, r, q.Base, q.After); err != nil {
		return Bundle{}, err
	}
	if err := s.list(ctx, r, &c); err != nil {
		return Bundle{}, err
	}
	b := Bundle{
		Format: r.format, Commit: c.Commit, Name: cloneName(r.top), Prefix: r.prefix,
		Uncommitted: c.Uncommitted, Omitted: c.Omitted, Submodules: c.Submodules, Patch: patch,
	}
	if err := b.describe(r); err != nil {
		return Bundle{}, err
	}
	if slices.Contains(q.Have[b.Repository], b.Commit) || q.Sent != nil && q.Sent(b) {
		return b, nil
	}
	own, remove, err := s.own(ctx, r, r.top)
	if err != nil {
		return Bundle{}, err
	}
	defer remove()
	err = own.writeBundle(ctx, &b, q)
	return b, err
}

// describe adds what the receiver needs of the source besides objects, and the name of the repository.
// A shallow repository has other commits after each fetch, so its boundary is part of the name.
func (b *Bundle) describe(r repository) error {
	shallow, err := os.ReadFile(filepath.Join(r.common, "shallow"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	b.Shallow = strings.Fields(string(shallow))
	exclude, err := os.ReadFile(filepath.Join(r.common, "info", "exclude"))
	if err == nil && len(exclude) <= maxExclude && utf8.Valid(exclude) {
		b.Exclude = string(exclude)
	}
	sum := sha256.Sum256([]byte(r.common + "\x00" + r.format + "\x00" + string(shallow)))
	b.Repository = hex.EncodeToString(sum[:])
	return nil
}

// writeBundle writes the file of a bundle: the commit without what the receiver has.
func (g git) writeBundle(ctx context.Context, b *Bundle, q BundleRequest) error {
	if _, err := g.run(ctx, nil, "update-ref", bundleRef(b.Commit), b.Commit); err != nil {
		return err
	}
	args := []string{"bundle", "create", "--quiet", "-", bundleRef(b.Commit)}
	for _, commit := range q.Have[b.Repository] {
		if !isHash(commit, b.Format) {
			continue
		}
		if _, err := g.run(ctx, nil, "cat-file", "-e", commit+"^{commit}"); err == nil {
			args = append(args, "^"+commit)
		}
	}
	if q.Most == 0 {
		q.Most = MaxBundle
	}
	file, err := os.OpenFile(q.File, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	hash := sha256.New()
	b.Size, err = g.runTo(ctx, io.MultiWriter(file, hash), q.Most, args...)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(q.File)
	}
	if errors.Is(err, errTooLong) {
		return &TooLargeError{fmt.Sprintf("the commits that the runner does not have are larger than %d MiB", q.Most>>20)}
	}
	b.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return err
}

// A BundleError says why a bundle isn't accepted.
type BundleError struct{ Field, Problem string }

func (e *BundleError) Error() string { return fmt.Sprintf("bundle: %s: %s", e.Field, e.Problem) }

// Check returns a *BundleError unless a bundle that came from another machine can be received.
func (b Bundle) Check() error {
	refuse := func(field, problem string) error { return &BundleError{field, problem} }
	switch {
	case !isHash(b.Repository, "sha256"):
		return refuse("repository", "is not a hash")
	case b.Format != "sha1" && b.Format != "sha256":
		return refuse("format", fmt.Sprintf("%q is not sha1 or sha256", b.Format))
	case !isHash(b.Commit, b.Format):
		return refuse("commit", "is not a hash")
	case !isName(b.Name) || strings.Contains(b.Name, "/"):
		return refuse("name", "is not the name of a directory")
	case b.Prefix != "" && (!isName(b.Prefix) || !strings.HasSuffix(b.Prefix, "/") || filepath.Clean(b.Prefix)+"/" != b.Prefix):
		return refuse("prefix", "is not a path below the repository")
	case slices.ContainsFunc(b.Shallow, func(c string) bool { return !isHash(c, b.Format) }):
		return refuse("shallow", "has something else than hashes")
	case len(b.Exclude) > maxExclude:
		return refuse("exclude", "is too long")
	case len(b.Uncommitted) > maxListed || len(b.Submodules) > 10*maxListed || b.Omitted < 0:
		return refuse("uncommitted", "names too many files")
	case b.Size < 0 || b.Size > MaxBundle || b.Size > 0 && !isHash(b.SHA256, "sha256"):
		return refuse("size", fmt.Sprintf("is not between 0 and %d, or has no SHA-256", MaxBundle))
	}
	return nil
}

// isName reports whether a path stays below a directory, and is no .git.
func isName(path string) bool {
	return path != "." && CheckCopy(path) == nil && utf8.ValidString(path) && !strings.ContainsFunc(path, unicode.IsControl)
}

func isHash(s, format string) bool {
	long := map[string]int{"sha1": 40, "sha256": 64}[format]
	return len(s) == long && strings.Trim(s, "0123456789abcdef") == ""
}

// runTo writes the output of a command that prints at most a number of bytes, and returns their number.
func (g git) runTo(ctx context.Context, w io.Writer, most int64, args ...string) (int64, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var stderr bytes.Buffer
	cmd := g.command(ctx, nil, args...)
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, commandError(ctx, args[0], &stderr, err)
	}
	n, err := io.Copy(w, io.LimitReader(stdout, most+1))
	if n > most || err != nil {
		stop()
	}
	failed := cmd.Wait()
	switch {
	case n > most:
		return n, errTooLong
	case err != nil:
		return n, fmt.Errorf("git %s: %w", args[0], err)
	case failed != nil:
		return n, commandError(ctx, args[0], &stderr, failed)
	}
	return n, nil
}
