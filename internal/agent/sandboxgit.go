package agent

import (
	"os"
	"path/filepath"
	"slices"

	"mailboxd/internal/sandbox"
)

// protectGit keeps the hooks and the configuration of a repository read-only, since git runs
// them also outside of the sandbox. The repository becomes a mount, so it can't be renamed.
// Nothing can be mounted on a link: where hooks or configuration are one, the whole repository
// is read-only, and so is what they name.
func protectGit(r *sandbox.Run, p sandbox.Path) {
	repository := filepath.Join(p.Real, ".git")
	info, err := os.Lstat(repository)
	if p.Real == "" || err != nil || info.Mode()&os.ModeSymlink != 0 { // noteGit records a link
		return
	}
	if !info.IsDir() { // of a linked worktree: it names the repository
		r.Fixed = append(r.Fixed, repository)
		return
	}
	r.Write = append(r.Write, sandbox.Path{Name: repository, Real: repository})
	for _, name := range []string{"hooks", "config"} {
		path := filepath.Join(repository, name)
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			r.Fixed = append(r.Fixed, repository)
			protectTarget(r, path)
		default:
			r.Fixed = append(r.Fixed, path)
		}
	}
}

// protectTarget makes what a link names read-only, if the run could write to it. The directories
// above become mounts, so they can't be renamed.
func protectTarget(r *sandbox.Run, link string) {
	target, err := filepath.EvalSymlinks(link)
	if err != nil {
		return // noteGit records a link to nothing
	}
	for _, p := range append(slices.Clone(r.Write), r.Cwd) {
		if p.Real == "" || !sandbox.Within(p.Real, target) {
			continue
		}
		r.Fixed = append(r.Fixed, target)
		for dir := filepath.Dir(target); dir != p.Real && sandbox.Within(p.Real, dir); dir = filepath.Dir(dir) {
			r.Write = append(r.Write, sandbox.Path{Name: dir, Real: dir})
		}
	}
}
