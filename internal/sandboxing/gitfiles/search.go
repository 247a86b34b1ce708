package gitfiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A repository is what git takes for one.
type repository struct {
	path    string // a .git, or a git directory with another name
	dir     string // the git directory, without symbolic links; "" if there is none
	tree    string // the top of its working tree, as far as that is known without a configuration
	pointer bool   // path is a file or a link that names the git directory
	linked  bool   // the git directory of a linked working tree
}

// A finding is what a search found.
type finding struct {
	repositories []repository // those that are higher in the tree come first
	unread       []string     // directories that could not be read
	limit        string       // why the search is not complete; "" if it is
	left         int          // of maxDirectories
}

// maxDirectories and maxRepositories limit a search, and maxUnread what it names.
const (
	maxDirectories  = 200_000
	maxRepositories = 1000
	maxUnread       = 100
)

// search finds the repositories in directories. It follows no symbolic link, and neither goes
// into a .git, except for the repositories of submodules and linked working trees.
func search(roots []string) finding {
	ctx, stop := context.WithTimeout(context.Background(), searchTimeout)
	defer stop()
	f := finding{left: maxDirectories}
	queue := slices.Clone(roots)
	for len(queue) > 0 {
		dir := queue[0]
		queue = queue[1:]
		if f.ends(ctx, dir) {
			return f
		}
		e, err := read(dir)
		if err != nil {
			f.unreadable(dir, err)
		}
		for _, name := range e.git {
			f.enter(ctx, repository{path: filepath.Join(dir, name), tree: dir})
		}
		if e.isRepository() {
			f.enter(ctx, repository{path: dir, tree: dir})
		}
		for _, name := range e.dirs {
			queue = append(queue, filepath.Join(dir, name))
		}
	}
	return f
}

// ends reports whether a search is over, before a directory.
func (f *finding) ends(ctx context.Context, dir string) bool {
	switch {
	case f.limit != "":
	case len(f.repositories) >= maxRepositories:
		f.limit = fmt.Sprintf("there are more than %d repositories, and %s is a directory that was not searched", maxRepositories, escape(dir))
	case f.left == 0:
		f.limit = fmt.Sprintf("there are more than %d directories, and %s is one that was not searched", maxDirectories, escape(dir))
	case ctx.Err() != nil:
		f.limit = fmt.Sprintf("there was not enough time, and %s is a directory that was not searched", escape(dir))
	}
	f.left--
	return f.limit != ""
}

func (f *finding) unreadable(dir string, err error) {
	if len(f.unread) < maxUnread && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.ELOOP) {
		f.unread = append(f.unread, escape(dir))
	}
}

// enter adds a repository, with those of its submodules and linked working trees.
func (f *finding) enter(ctx context.Context, r repository) {
	info, err := os.Lstat(r.path)
	if err != nil {
		return
	}
	r.pointer = !info.IsDir()
	r.dir = gitDirectory(r.path)
	f.repositories = append(f.repositories, r)
	if r.pointer || r.dir == "" {
		return
	}
	f.inside(ctx, filepath.Join(r.dir, "modules"), false)
	f.inside(ctx, filepath.Join(r.dir, "worktrees"), true)
}

// inside finds the repositories of submodules or linked working trees. Names of submodules may
// have slashes.
func (f *finding) inside(ctx context.Context, dir string, linked bool) {
	queue := []string{dir}
	for len(queue) > 0 {
		dir := queue[0]
		queue = queue[1:]
		if f.ends(ctx, dir) {
			return
		}
		e, err := read(dir)
		if err != nil {
			f.unreadable(dir, err)
		}
		if e.isRepository() {
			f.enter(ctx, repository{path: dir, linked: linked})
			continue
		}
		for _, name := range e.dirs {
			queue = append(queue, filepath.Join(dir, name))
		}
	}
}

// entries are what is interesting in a directory.
type entries struct {
	git                            []string // .git, also with capital letters: some file systems take them for the same
	dirs                           []string // other directories
	head, objects, refs, elsewhere bool
}

// isRepository reports whether git takes the directory itself for a git directory, if its HEAD
// is a good one.
func (e entries) isRepository() bool { return e.head && (e.objects && e.refs || e.elsewhere) }

// read reads a directory in parts: it may be large.
func read(dir string) (e entries, err error) {
	file, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return e, err
	}
	defer file.Close()
	for {
		part, err := file.ReadDir(1024)
		for _, entry := range part {
			e.add(entry)
		}
		if errors.Is(err, io.EOF) {
			return e, nil
		}
		if err != nil {
			return e, err
		}
	}
}

func (e *entries) add(entry fs.DirEntry) {
	name := entry.Name()
	switch strings.ToLower(name) {
	case ".git":
		e.git = append(e.git, name)
		return
	case "head":
		e.head = e.head || !entry.IsDir()
	case "objects":
		e.objects = true
	case "refs":
		e.refs = true
	case "commondir":
		e.elsewhere = true
	}
	if entry.IsDir() {
		e.dirs = append(e.dirs, name)
	}
}

// maxPointer limits a file .git, as git does.
const maxPointer = 1 << 20

// gitDirectory returns the git directory that a .git is or names, without symbolic links; "" if
// there is none.
func gitDirectory(path string) string {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	info, err := os.Stat(resolved)
	if err != nil || info.IsDir() {
		return resolved
	}
	text, err := readRegular(resolved, maxPointer)
	dir, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if err != nil || !ok {
		return ""
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(resolved), dir)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return ""
	}
	return dir
}
