package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MaxPatch limits the bytes of a patch, and maxChanged those of all changed files. What is
// larger stays in the clone alone.
const (
	MaxPatch   = 32 << 20
	maxChanged = 256 << 20
)

// A Diff is the work in a clone: the difference between its start and the files now.
type Diff struct {
	Patch   []byte // empty without a difference
	Summary Summary
}

// A Summary says how much a patch changes.
type Summary struct {
	Files   []File   `json:"files,omitempty"`
	Added   int      `json:"added"`             // lines
	Deleted int      `json:"deleted"`           // lines
	Skipped []string `json:"skipped,omitempty"` // repositories among the files, changed submodules, and names that git takes for .git; no patch has them
}

// A File is a changed file.
type File struct {
	Path    string `json:"path"`
	From    string `json:"from,omitempty"` // before a rename
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

// A TooLargeError says that the work in a clone is too large to be kept.
type TooLargeError struct{ What string }

func (e *TooLargeError) Error() string { return e.What }

// Diff returns the work in a clone. Ignored files aren't part of it, as far as .gitignore files
// and the source repository say. The clone's processes have ended.
func (s Store) Diff(ctx context.Context, c Clone) (Diff, error) {
	if err := c.check(); err != nil {
		return Diff{}, err
	}
	if err := checkFiles(c.Dir); err != nil {
		return Diff{}, err
	}
	r, err := c.repository(ctx)
	if err != nil {
		return Diff{}, err
	}
	own, remove, err := s.own(ctx, r, c.Dir)
	if err != nil {
		return Diff{}, err
	}
	defer remove()
	start, err := s.begin(ctx, own, c)
	if err != nil {
		return Diff{}, err
	}
	var d Diff
	if d.Summary.Skipped, err = own.takeFiles(ctx, r, c.Copied); err != nil {
		return Diff{}, err
	}
	if d.Patch, err = own.runAtMost(ctx, MaxPatch, diffArgs(start, "--patch", "--binary", "--full-index")...); errors.Is(err, errTooLong) {
		return Diff{}, &TooLargeError{fmt.Sprintf("the patch is larger than %d MiB", MaxPatch>>20)}
	}
	if err != nil {
		return Diff{}, err
	}
	text, err := own.run(ctx, nil, diffArgs(start, "--numstat", "-z")...)
	if err != nil {
		return Diff{}, err
	}
	return d, d.Summary.count(text)
}

// diffArgs compares the index with a commit or a tree.
func diffArgs(commit string, how ...string) []string {
	args := append([]string{"diff-index", "--cached"}, how...)
	return append(args, "--find-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all",
		"--src-prefix=a/", "--dst-prefix=b/", commit, "--")
}

// takeFiles puts the files of the working tree into the index. It returns what it leaves out:
// nested repositories and changed submodules, in which git would run, bare repositories, whose
// files git would obey, and names that git refuses. Copied files are no work.
func (g git) takeFiles(ctx context.Context, r repository, copied []string) (skipped []string, err error) {
	submodules, err := g.submodules(ctx)
	if err != nil {
		return nil, err
	}
	text, err := g.run(ctx, nil, "-c", r.exclude(), "ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(g.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	changed := changes{skip: map[string]bool{}, seen: map[string]bool{}, plain: map[string]bool{".": true}, bare: map[string]bool{}}
	for _, path := range submodules {
		changed.skip[path] = true
	}
	for _, path := range split(text) {
		if !isCopied(path, copied) {
			changed.add(root, path)
		}
	}
	if changed.bytes > maxChanged {
		return nil, &TooLargeError{fmt.Sprintf("the changed files have %d MiB, more than %d MiB", changed.bytes>>20, maxChanged>>20)}
	}
	if _, err := g.run(ctx, []byte(changed.removed.String()), "update-index", "-z", "--force-remove", "--stdin"); err != nil {
		return nil, err
	}
	if _, err := g.strict().run(ctx, []byte(changed.updated.String()), "update-index", "-z", "--add", "--remove", "--replace", "--stdin"); err != nil {
		return nil, err
	}
	refused, err := g.refused(ctx, split([]byte(changed.updated.String())))
	return append(changed.skipped, refused...), err
}

// changes are the paths of a working tree that aren't as in the index.
type changes struct {
	skip, seen       map[string]bool
	plain            map[string]bool // whether a directory is one, with all above it, and no link
	bare             map[string]bool // whether a directory is a bare repository
	updated, removed strings.Builder // paths, each with a final NUL
	skipped          []string
	bytes            int64
}

// add sorts a path: only regular files, links and missing files can be taken.
func (c *changes) add(root *os.Root, path string) {
	if c.seen[path] {
		return
	}
	c.seen[path] = true
	if name, ok := strings.CutSuffix(path, "/"); ok || c.skip[path] {
		c.skipped = append(c.skipped, plain(name))
		return
	}
	size := int64(0)
	info, err := root.Lstat(path)
	switch {
	case !c.isPlain(root, filepath.Dir(path)):
		c.removed.WriteString(path + "\x00")
		return
	case err == nil && info.Mode().IsRegular():
		size = info.Size()
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
	default: // missing, or what git doesn't keep: a directory, a pipe, a socket
		c.removed.WriteString(path + "\x00")
		return
	}
	if dir := c.bareAbove(root, path); dir != "" {
		if !slices.Contains(c.skipped, plain(dir)) {
			c.skipped = append(c.skipped, plain(dir))
		}
		return
	}
	c.bytes += size
	c.updated.WriteString(path + "\x00")
}

// isPlain reports whether a directory is no link, and behind none.
func (c *changes) isPlain(root *os.Root, dir string) bool {
	plain, known := c.plain[dir]
	if !known {
		info, err := root.Lstat(dir)
		plain = err == nil && info.IsDir() && c.isPlain(root, filepath.Dir(dir))
		c.plain[dir] = plain
	}
	return plain
}

// count reads the output of --numstat -z: added, deleted and path, or two paths after an empty
// one for a rename.
func (s *Summary) count(text []byte) error {
	items := split(text)
	for i := 0; i < len(items); i++ {
		fields := strings.SplitN(items[i], "\t", 3)
		if len(fields) != 3 {
			return fmt.Errorf("read summary of patch: %q", items[i])
		}
		f := File{Path: plain(fields[2]), Binary: fields[0] == "-"}
		if f.Path == "" && i+2 < len(items) {
			f.From, f.Path = plain(items[i+1]), plain(items[i+2])
			i += 2
		}
		f.Added, _ = strconv.Atoi(fields[0]) // "-" is a binary file: no lines
		f.Deleted, _ = strconv.Atoi(fields[1])
		s.Files, s.Added, s.Deleted = append(s.Files, f), s.Added+f.Added, s.Deleted+f.Deleted
	}
	return nil
}
