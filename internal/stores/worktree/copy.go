package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mailboxd/internal/stores/dirtree"
)

// CheckCopy returns why a name can't be one of Request.Copy: it isn't a path below the top of a
// repository, or it names what git keeps there.
func CheckCopy(name string) error {
	clean := filepath.Clean(name)
	switch {
	case name == "" || clean == "." || !filepath.IsLocal(name) || strings.ContainsRune(name, 0):
		return fmt.Errorf("%q: write a path below the top of the repository, such as node_modules", name)
	case slices.ContainsFunc(strings.Split(clean, "/"), func(part string) bool { return strings.EqualFold(part, ".git") }):
		return fmt.Errorf("%q: a clone has a .git of its own", name)
	}
	return nil
}

// copyFiles copies what Request.Copy names into a new clone, and notes in its record what was not
// copied. Nothing outside of the source is read, and no link is followed. What git tracks isn't copied:
// the clone has it as it is committed, and changes of it are work.
func (s Store) copyFiles(ctx context.Context, r repository, c *Clone) error {
	if len(c.Copied) == 0 {
		return nil
	}
	from, err := os.OpenRoot(r.top)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(c.Dir)
	if err != nil {
		return err
	}
	defer to.Close()
	var copied, left []string
	for _, name := range c.Copied {
		tracked, err := c.tracked(ctx, name)
		switch {
		case err != nil:
		case tracked:
			left = append(left, plain(name)+": git tracks it, so the clone has it as it is committed")
		default:
			var omitted []string
			omitted, err = copyNamed(ctx, from, to, name)
			copied, left = append(copied, name), append(left, omitted...)
		}
		if err != nil {
			return fmt.Errorf("copy %s into worktree: %w", name, err)
		}
	}
	c.Copied = copied
	c.Uncommitted = slices.DeleteFunc(c.Uncommitted, func(path string) bool { return isCopied(path, copied) })
	c.NotCopied = left[:min(len(left), maxListed)]
	return s.write(*c)
}

// copyNamed copies a file or a directory with all that is in it. It returns the paths that it left out,
// with the reasons.
func copyNamed(ctx context.Context, from, to *os.Root, name string) (left []string, err error) {
	dir, base := filepath.Dir(name), filepath.Base(name)
	there := hasDir(from, dir) // no link is followed, not even one that stays inside
	if there {
		err = to.MkdirAll(dir, 0o700)
	}
	if lacks(err) {
		return nil, err
	}
	if err != nil || !there || !hasDir(to, dir) {
		return []string{plain(name) + ": is behind something else than a directory"}, nil
	}
	if _, err := from.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return []string{plain(name) + ": does not exist"}, nil
	}
	source, err := from.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	target, err := to.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	leadsOut := map[string]bool{}
	omitted, err := dirtree.CopyIn(ctx, source, target, dirtree.CopyOptions{
		Skip: func(path string) bool { return !isBelow(path, base) },
		Link: func(path, to string) bool { // an absolute one would lead to the source
			leadsOut[path] = filepath.IsAbs(to) || !filepath.IsLocal(filepath.Join(dir, filepath.Dir(path), to))
			return !leadsOut[path]
		},
	})
	for _, path := range omitted {
		why := "can't be read, or is neither a file nor a directory"
		if leadsOut[path] {
			why = "is a link that leads out of the repository"
		}
		left = append(left, plain(filepath.Join(dir, path))+": "+why)
	}
	return left, err
}

// hasDir reports whether a path in a root is a directory that is behind no link.
func hasDir(root *os.Root, path string) bool {
	for at := path; at != "."; at = filepath.Dir(at) {
		if info, err := root.Lstat(at); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// tracked reports whether a commit of a new clone has a path, or files below it.
func (c Clone) tracked(ctx context.Context, path string) (bool, error) {
	clone := git{dir: c.Dir, gitDir: filepath.Join(c.Dir, ".git")} // no agent has been there yet
	text, err := clone.run(ctx, nil, "--literal-pathspecs", "ls-files", "-z", "--", path)
	return len(text) > 0, err
}

// isCopied reports whether a path is one of the copied files, or was made among them.
func isCopied(path string, copied []string) bool {
	return slices.ContainsFunc(copied, func(name string) bool { return isBelow(strings.TrimSuffix(path, "/"), name) })
}
