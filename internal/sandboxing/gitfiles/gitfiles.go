// Package gitfiles finds the files in some directories that git obeys, and says which of them
// are new or changed later.
//
// A configuration, a hook, or a pointer to another repository can name programs that the next
// git status of a person runs. An agent that may write a directory may make all of them: a
// repository where none was, a bare one among its files, or a file that the configuration of a
// repository includes. Take asks git what it obeys in each repository, by commands that run
// neither hooks nor filters, and describes it. Changes compares: it runs no git, so it obeys
// nothing that an agent left.
package gitfiles

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Snapshot describes what git obeys in some directories at one time. The zero value is that
// of no directory.
type Snapshot struct {
	Roots        []string          `json:"roots"`                  // the directories, without symbolic links
	Repositories map[string]string `json:"repositories,omitempty"` // each .git, and each git directory with another name, with a description
	Files        map[string]string `json:"files,omitempty"`        // a description of each file or directory that git obeys; "" if it is absent
	Unread       []string          `json:"unread,omitempty"`       // directories that could not be read
	Unasked      []string          `json:"unasked,omitempty"`      // repositories about which git gave no answer in time
	Limit        string            `json:"limit,omitempty"`        // why the search is not complete; "" if it is

	protectable []Directory
}

// A Directory is the repository of one of the directories of a Snapshot, or of a submodule of it.
// The files of a project stay writable, and so do other repositories: an agent may remove them.
type Directory struct {
	Path  string   // the git directory
	Top   string   // the directory of the Snapshot
	Files []string // what git obeys inside of the git directory, and exists
}

// searchTimeout limits the time of a search, and askTimeout that of all questions to git.
const (
	searchTimeout = 30 * time.Second
	askTimeout    = 10 * time.Second
)

// Take describes what git obeys in directories, whose paths are absolute and have no symbolic
// links. Without the program git, it describes the usual files.
func Take(roots []string) Snapshot {
	s := Snapshot{Roots: outermost(roots), Repositories: map[string]string{}, Files: map[string]string{}}
	found := search(s.Roots)
	ctx, stop := context.WithTimeout(context.Background(), askTimeout)
	defer stop()
	s.Unread, s.Limit = found.unread, found.limit
	for _, r := range found.repositories {
		s.Repositories[escape(r.path)] = entryState(r.path)
	}
	for i, a := range ask(ctx, found.repositories) {
		s.add(found.repositories[i], a, roots)
	}
	for _, path := range userFiles(ctx, len(found.repositories) > 0) {
		s.describe(path)
	}
	return s
}

// outermost leaves out directories that are below others.
func outermost(roots []string) (outer []string) {
	for _, dir := range slices.Sorted(slices.Values(roots)) { // a parent comes before what is in it
		if dir != "" && !slices.ContainsFunc(outer, func(above string) bool { return within(above, dir) }) {
			outer = append(outer, dir)
		}
	}
	return outer
}

// within reports whether a clean absolute path is a directory or below it.
func within(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// describe records a path, if it is inside of the directories.
func (s *Snapshot) describe(path string) {
	if slices.ContainsFunc(s.Roots, func(root string) bool { return within(root, path) }) {
		s.Files[escape(path)] = stateOf(path)
	}
}

// add records what git obeys in a repository.
func (s *Snapshot) add(r repository, a answer, roots []string) {
	if a.late {
		s.Unasked = append(s.Unasked, escape(r.path))
	}
	for _, path := range a.files {
		s.describe(path)
	}
	for _, root := range roots {
		if !r.isTop(root) {
			continue
		}
		d := Directory{Path: r.dir, Top: root}
		for _, path := range a.files {
			if within(r.dir, path) && exists(path) && !slices.Contains(d.Files, path) {
				d.Files = append(d.Files, path)
			}
		}
		s.protectable = append(s.protectable, d)
	}
}

// isTop reports whether a repository is that of a directory, or of a submodule there.
func (r repository) isTop(root string) bool {
	repository := filepath.Join(root, ".git")
	return !r.pointer && !r.linked && (r.path == root || r.path == repository || within(filepath.Join(repository, "modules"), r.path))
}

// maxProtected limits the repositories that Protectable returns: each becomes some mounts.
const maxProtected = 64

// Protectable returns the repositories at the top of the directories, with their submodules,
// that an agent needs to write to, except for some of their files.
func (s Snapshot) Protectable() []Directory {
	return s.protectable[:min(len(s.protectable), maxProtected)]
}

// Forget leaves out what is inside of paths that the agent can't change, except for links: what
// they name may be elsewhere.
func (s *Snapshot) Forget(paths []string) {
	maps.DeleteFunc(s.Files, func(path, state string) bool {
		if slices.Contains([]string{"link", "broken"}, kind(state)) {
			return false
		}
		return slices.ContainsFunc(paths, func(fixed string) bool { return within(fixed, unescape(path)) })
	})
}

// escape makes a path text for JSON and for people. Absolute paths don't begin with a quotation
// mark.
func escape(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return strconv.QuoteToASCII(path)
}

func unescape(path string) string {
	if original, err := strconv.Unquote(path); err == nil {
		return original
	}
	return path
}

// A Change is something that git obeys since a Snapshot was taken.
type Change struct {
	Path string // quoted, if it is not UTF-8
	Made bool   // it is new, or something else than before; otherwise its content has changed
}

// Changes returns what git obeys in the directories of a Snapshot and did not before, and why
// there may be more: the search is limited.
func (s Snapshot) Changes() (changes []Change, unsearched []string) {
	if len(s.Roots) == 0 {
		return nil, nil
	}
	now := search(s.Roots)
	for _, r := range now.repositories { // a repository comes before what is in it
		changes = compare(changes, escape(r.path), s.Repositories[escape(r.path)], entryState(r.path))
	}
	for _, path := range slices.Sorted(maps.Keys(s.Files)) {
		changes = compare(changes, path, s.Files[path], stateOf(unescape(path)))
	}
	return changes, s.unsearched(now)
}

// Accept describes anew what Changes names, so that it is not named again. It asks no git: of a
// new repository, the usual files count.
func (s *Snapshot) Accept() {
	now := search(s.Roots)
	if s.Files == nil { // stored without any
		s.Files = map[string]string{}
	}
	if s.Repositories == nil {
		s.Repositories = map[string]string{}
	}
	for _, r := range now.repositories {
		path := escape(r.path)
		if _, known := s.Repositories[path]; !known {
			for _, file := range usualFiles(r) {
				s.describe(file)
			}
		}
		s.Repositories[path] = entryState(r.path)
	}
	for path := range s.Files {
		s.Files[path] = stateOf(unescape(path))
	}
	s.Unread, s.Limit, s.Unasked = now.unread, now.limit, nil
}

// maxChanges limits what Changes returns.
const maxChanges = 100

// compare adds a path whose description has changed. What is in a .git that was made is not
// named beside it, and what is gone harms nothing.
func compare(changes []Change, path, before, after string) []Change {
	named := func(c Change) bool { return c.Made && filepath.Base(c.Path) == ".git" && within(c.Path, path) }
	if after == "" || after == before || len(changes) == maxChanges || slices.ContainsFunc(changes, named) {
		return changes
	}
	return append(changes, Change{path, kind(before) != kind(after)})
}

// unsearched returns why a search may have missed something.
func (s Snapshot) unsearched(now finding) (reasons []string) {
	if limit := cmp.Or(now.limit, s.Limit); limit != "" {
		reasons = append(reasons, limit)
	}
	for _, path := range now.unread {
		if !slices.Contains(s.Unread, path) {
			reasons = append(reasons, path+" can't be read")
		}
	}
	for _, path := range s.Unasked {
		reasons = append(reasons, "git did not say in time which files it obeys in "+path)
	}
	return reasons
}
