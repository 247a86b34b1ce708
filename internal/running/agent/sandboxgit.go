package agent

import (
	"os"
	"path/filepath"
	"slices"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/gitfiles"
	"mailboxd/internal/sandboxing/sandbox"
)

// protectGit keeps what git obeys read-only in the repositories at the top of the writable
// directories, with their submodules, since git obeys it also outside of the sandbox. It
// records the rest, which an agent may change: inspect compares it after the run. The weaker
// sandbox has no read-only path inside of a writable one.
func protectGit(j task.Job, r *sandbox.Run, profile sandbox.Profile, weaker bool) error {
	roots := r.Logins
	if profile != sandbox.ReadOnly {
		roots = nil
		for _, p := range append(slices.Clone(r.Write), r.Cwd) {
			roots = append(roots, p.Real)
		}
	}
	s := gitfiles.Take(roots)
	if profile != sandbox.ReadOnly {
		fixPointers(r, roots)
		for _, d := range s.Protectable() {
			fix(r, d)
		}
	}
	if !weaker {
		s.Forget(r.Fixed)
	}
	return noteGit(j, s)
}

// fixPointers keeps a .git that is a file read-only: it names the repository of a linked working
// tree. Nothing can be mounted on a link, which inspect compares.
func fixPointers(r *sandbox.Run, roots []string) {
	for _, root := range roots {
		path := filepath.Join(root, ".git")
		if info, err := os.Lstat(path); root != "" && err == nil && info.Mode().IsRegular() {
			r.Fixed = append(r.Fixed, path)
		}
	}
}

// fix keeps files of a git directory read-only. The directories above them become mounts, so
// they can't be renamed. Nothing can be mounted on a link: where a file is one, the whole git
// directory is read-only, and so is what it names.
func fix(r *sandbox.Run, d gitfiles.Directory) {
	mountBetween(r, d.Top, d.Path)
	for _, path := range d.Files {
		if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
			r.Fixed = append(r.Fixed, path)
			mountBetween(r, d.Path, filepath.Dir(path))
			continue
		}
		r.Fixed = append(r.Fixed, d.Path)
		protectTarget(r, path)
	}
}

// mountBetween makes the directories below a top mounts, down to a directory.
func mountBetween(r *sandbox.Run, top, dir string) {
	for ; dir != top && sandbox.Within(top, dir); dir = filepath.Dir(dir) {
		r.Write = append(r.Write, sandbox.Path{Name: dir, Real: dir})
	}
}

// protectTarget makes what a link names read-only, if the run could write to it.
func protectTarget(r *sandbox.Run, link string) {
	target, err := filepath.EvalSymlinks(link)
	if err != nil {
		return // a link to nothing, which inspect compares
	}
	for _, p := range append(slices.Clone(r.Write), r.Cwd) {
		if p.Real == "" || !sandbox.Within(p.Real, target) {
			continue
		}
		r.Fixed = append(r.Fixed, target)
		mountBetween(r, p.Real, filepath.Dir(target))
	}
}
