package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// A ConflictError says why a patch doesn't apply. Nothing was changed.
type ConflictError struct {
	Source  string
	Reasons []string // by git: a file and its problem
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the patch does not apply to %s, and nothing was changed: %s", e.Source, strings.Join(e.Reasons, "; "))
}

// ErrApplied says that the working tree has the changes of a patch already.
var ErrApplied = errors.New("the working tree has these changes already")

// Apply puts a patch into the working tree of a source repository. It changes nothing unless
// all of the patch applies, and no file that the patch changes has uncommitted changes, other than
// those of an earlier patch that was applied before it. It changes neither the index nor a branch.
func (s Store) Apply(ctx context.Context, source string, earlier, patch []byte) error {
	if len(patch) == 0 {
		return nil
	}
	r, err := find(ctx, source)
	if err != nil {
		return err
	}
	commit, err := r.head(ctx)
	if err != nil {
		return err
	}
	own, remove, err := s.own(ctx, r, r.top)
	if err != nil {
		return err
	}
	defer remove()
	if err := r.indexFor(ctx, own, commit); err != nil {
		return err
	}
	own = own.strict()
	err = r.apply(ctx, own, commit, patch)
	if _, conflict := errors.AsType[*ConflictError](err); !conflict || len(earlier) == 0 {
		return err
	}
	if _, changed := own.run(ctx, earlier, applyArgs("--cached")...); changed != nil {
		return err // it is part of HEAD, or was changed since
	}
	if again := r.apply(ctx, own, commit, patch); again == nil || errors.Is(again, ErrApplied) {
		return again
	}
	return err
}

// apply applies a patch to a working tree that is as in an index.
func (r repository) apply(ctx context.Context, own git, commit string, patch []byte) error {
	_, _ = own.run(ctx, nil, "update-index", "-q", "--refresh") // fails if any file has changes; apply looks at those of the patch
	_, err := own.run(ctx, patch, applyArgs("--check", "--index")...)
	if err == nil { // files as in the index
		if err := r.checkEmbedded(ctx, own, commit, patch); err != nil {
			return err
		}
		// With --index, git looks for links in the index alone, and would follow one that is only
		// in the working tree. Without it, git checks the working tree again.
		if _, err = own.run(context.WithoutCancel(ctx), patch, applyArgs()...); err == nil {
			return nil
		}
	}
	failed, ok := errors.AsType[*CommandError](err)
	if !ok || ctx.Err() != nil {
		return err
	}
	if _, err := own.run(ctx, patch, applyArgs("--check", "--reverse")...); err == nil {
		return ErrApplied
	}
	return &ConflictError{r.top, reasons(failed.Stderr)}
}

// checkEmbedded checks a patch against a working tree. It puts it into the index of our own, which
// nothing needs afterwards.
func (r repository) checkEmbedded(ctx context.Context, own git, commit string, patch []byte) error {
	if _, err := own.run(ctx, patch, applyArgs("--cached")...); err != nil {
		return err
	}
	root, err := os.OpenRoot(r.top)
	if err != nil {
		return err
	}
	defer root.Close()
	return own.checkPatched(ctx, commit, r.top, root)
}

// applyArgs applies a patch exactly: whitespace as it is, and no three-way merge.
func applyArgs(how ...string) []string {
	args := append([]string{"apply"}, how...)
	return append(args, "--binary", "--whitespace=nowarn", "-p1", "-")
}

// maxReasons limits the reasons of a conflict.
const maxReasons = 10

// reasons returns the errors in what git apply printed.
func reasons(stderr string) (all []string) {
	for line := range strings.SplitSeq(stderr, "\n") {
		line, ok := strings.CutPrefix(line, "error: ")
		if !ok || strings.HasPrefix(line, "patch failed: ") {
			continue
		}
		if path, ok := strings.CutSuffix(line, ": does not match index"); ok {
			line = path + " has changes that are not committed"
		}
		all = append(all, line)
	}
	if len(all) > maxReasons {
		all = append(all[:maxReasons], fmt.Sprintf("%d more", len(all)-maxReasons))
	}
	if len(all) == 0 {
		all = []string{stderr}
	}
	return all
}

// A Commit is what FetchBranch records.
type Commit struct {
	Parent  string // the start commit
	Branch  string
	Message string
	Author  string // a name
	Earlier []byte // a patch that the commit has before its own
	Time    time.Time
}

// ErrBranchExists says that the source has another branch of the same name.
var ErrBranchExists = errors.New("the repository has another branch of this name")

// FetchBranch makes a branch in a source repository, with one commit: the patch on its start
// commit. It changes neither the working tree nor the index. The same commit again changes
// nothing.
func (s Store) FetchBranch(ctx context.Context, source string, patch []byte, c Commit) (string, error) {
	r, err := find(ctx, source)
	if err != nil {
		return "", err
	}
	own, remove, err := s.own(ctx, r, r.top)
	if err != nil {
		return "", err
	}
	defer remove()
	own.environ = append(own.environ, "GIT_OBJECT_DIRECTORY="+r.objects)
	hash, err := own.commit(ctx, patch, c)
	if err != nil {
		return "", err
	}
	source, ref := r.top, "refs/heads/"+c.Branch
	there := git{dir: source}
	if has, err := there.run(ctx, nil, "rev-parse", "--verify", "-q", ref); err == nil {
		if string(bytes.TrimSpace(has)) == hash {
			return hash, nil
		}
		return "", fmt.Errorf("%w: %s; rename or delete it first", ErrBranchExists, c.Branch)
	}
	_, err = there.run(ctx, nil, "update-ref", ref, hash, strings.Repeat("0", len(hash)))
	return hash, err
}

// commit makes the commit in the objects of the source. The same arguments make the same one.
func (g git) commit(ctx context.Context, patch []byte, c Commit) (string, error) {
	if _, err := g.run(ctx, nil, "read-tree", c.Parent); err != nil {
		return "", err
	}
	if len(c.Earlier) > 0 {
		if _, err := g.run(ctx, c.Earlier, applyArgs("--cached")...); err != nil {
			return "", err
		}
	}
	if len(patch) > 0 {
		g = g.strict()
		if _, err := g.run(ctx, patch, applyArgs("--cached")...); err != nil {
			return "", err
		}
		if err := g.checkPatched(ctx, c.Parent, g.dir, nil); err != nil {
			return "", err
		}
	}
	tree, err := g.run(ctx, nil, "write-tree")
	if err != nil {
		return "", err
	}
	when := fmt.Sprintf("%d +0000", c.Time.Unix())
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		g.environ = append(g.environ, "GIT_"+role+"_NAME="+plainName(c.Author), "GIT_"+role+"_EMAIL=mailboxd@localhost", "GIT_"+role+"_DATE="+when)
	}
	hash, err := g.run(ctx, []byte(c.Message), "commit-tree", string(bytes.TrimSpace(tree)), "-p", c.Parent)
	return string(bytes.TrimSpace(hash)), err
}

// plainName is a name as git records it.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '<' || r == '>' {
			return -1
		}
		return r
	}, name)
	if strings.TrimSpace(name) == "" {
		return "mailboxd"
	}
	return name
}
