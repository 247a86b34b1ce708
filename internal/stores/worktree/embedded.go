package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxRefused limits the names that git refuses in a record.
const maxRefused = 100

// refused returns those of some paths that git did not take into the index: names that are
// .git on some system, and a link .gitmodules.
func (g git) refused(ctx context.Context, paths []string) (refused []string, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	text, err := g.run(ctx, nil, "ls-files", "-z")
	taken := map[string]bool{}
	for _, path := range split(text) {
		taken[path] = true
	}
	more := 0
	for _, path := range paths {
		switch {
		case taken[path]:
		case len(refused) == maxRefused:
			more++
		default:
			refused = append(refused, plain(path))
		}
	}
	if more > 0 {
		refused = append(refused, fmt.Sprintf("%d more names", more))
	}
	return refused, err
}

// isBare reports whether a directory is a bare repository: it has HEAD, objects and refs, or HEAD
// and a file that names another repository. Git obeys the configuration beside them when somebody
// works there. In a patch they are ordinary files.
func isBare(has func(name string) bool) bool {
	return has("head") && (has("objects") && has("refs") || has("commondir"))
}

// bareAbove returns the bare repository that a path is in; "" if it is in none. The top of a
// working tree has a .git, which counts there.
func (c *changes) bareAbove(root *os.Root, path string) string {
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		bare, known := c.bare[dir]
		if !known {
			names := lowerNames(root, dir)
			bare = isBare(func(name string) bool { return names[name] })
			c.bare[dir] = bare
		}
		if bare {
			return dir
		}
	}
	return ""
}

// lowerNames returns the names in a directory in lower case, as some file systems compare them,
// except for a directory HEAD, which git takes for none.
func lowerNames(root *os.Root, dir string) map[string]bool {
	names := map[string]bool{}
	file, err := root.Open(dir)
	if err != nil {
		return names
	}
	defer file.Close()
	all, _ := file.ReadDir(-1) // what can't be read is not taken either
	for _, entry := range all {
		if name := strings.ToLower(entry.Name()); name != "head" || !entry.IsDir() {
			names[name] = true
		}
	}
	return names
}

// checkPatched returns a *ConflictError if a patch makes or changes a repository among the
// files: a submodule, or a bare one. The index has the patch, on a commit. With a root, it counts
// what the patch meets there, too. Patches of Diff have no such files; there may be older ones.
func (g git) checkPatched(ctx context.Context, commit, source string, root *os.Root) error {
	text, err := g.run(ctx, nil, "diff-index", "--cached", "-z", "--no-renames", commit, "--")
	if err != nil {
		return err
	}
	listed, err := g.run(ctx, nil, "ls-files", "-z")
	if err != nil {
		return err
	}
	p := patched{gone: map[string]bool{}, there: namesIn(split(listed))}
	p.read(split(text))
	if wrong := append(p.submodules, p.repositories(root)...); len(wrong) > 0 {
		return &ConflictError{source, wrong[:min(len(wrong), maxReasons)]}
	}
	return nil
}

// A patched is what a patch makes of a commit. Names in its maps are in lower case.
type patched struct {
	changed    []string        // paths that it makes or changes
	gone       map[string]bool // paths that it removes
	there      map[string]bool // paths and directories after it
	submodules []string        // why it is refused: submodules that it makes or changes
}

// read reads the output of diff-index -z: modes, hashes and a letter, and then a path.
func (p *patched) read(items []string) {
	for ; len(items) >= 2; items = items[2:] {
		fields, path := strings.Fields(items[0]), items[1]
		switch {
		case len(fields) < 5:
		case fields[4] == "D":
			p.gone[strings.ToLower(path)] = true
		case fields[1] == "160000":
			p.submodules = append(p.submodules, plain(path)+" is a submodule")
		default:
			p.changed = append(p.changed, path)
		}
	}
}

// repositories says which directories of changed files would be bare repositories.
func (p *patched) repositories(root *os.Root) (wrong []string) {
	seen := map[string]bool{}
	for _, path := range p.changed {
		for dir := filepath.Dir(path); dir != "." && !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			names := map[string]bool{}
			if root != nil {
				names = lowerNames(root, dir)
			}
			if isBare(func(name string) bool {
				path := filepath.Join(strings.ToLower(dir), name)
				return p.there[path] || names[name] && !p.gone[path]
			}) {
				wrong = append(wrong, plain(dir)+" would be a repository, whose configuration git obeys")
			}
		}
	}
	return wrong
}

// namesIn returns paths in lower case, with all directories above them except for a directory
// HEAD.
func namesIn(paths []string) map[string]bool {
	names, seen := map[string]bool{}, map[string]bool{}
	for _, path := range paths {
		path = strings.ToLower(path)
		names[path] = true
		for dir := filepath.Dir(path); dir != "." && !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			names[dir] = names[dir] || filepath.Base(dir) != "head"
		}
	}
	return names
}
