package agent

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/sandbox"
)

// mostRefs is how many files of a task bubblewrap mounts one by one. It has an open descriptor for
// each, and takes a limited number of options.
const mostRefs = 100

// refsName is the directory of a run with links to the files of its task, or copies, if these are
// many.
const refsName = "refs"

// addManyRefs adds directories with links to the files that a task names. The other paths of the
// run have to be there already. The weaker sandbox mounts nothing, and gets the files.
func addManyRefs(j task.Job, r *sandbox.Run, refs []sandbox.Path, weaker bool) error {
	if weaker {
		r.Read = append(r.Read, refs...)
		return nil
	}
	top := inDir(j, refsName)
	if err := os.Mkdir(top, 0o700); err != nil {
		return err
	}
	dirs := map[string]bool{}
	for _, ref := range refs {
		dir := mountFor(*r, ref.Real)
		if dir == "" {
			continue // another path of the run shows it
		}
		if err := linkRef(ref.Real, filepath.Join(top, ref.Real)); err != nil {
			return fmt.Errorf("prepare %s for the sandbox: %w", ref.Name, err)
		}
		if !dirs[dir] {
			dirs[dir] = true
			r.Refs = append(r.Refs, sandbox.Path{Name: dir, Real: filepath.Join(top, dir)})
		}
	}
	for dir := range dirs {
		if err := addMountPoints(top, dir, *r); err != nil {
			return err
		}
	}
	return nil
}

// mountFor returns the highest directory above a file that can be mounted without hiding something
// of a run; "" if another path of the run has the file.
func mountFor(r sandbox.Run, path string) (dir string) {
	for _, p := range r.Paths() {
		if sandbox.Within(p.Real, path) {
			return ""
		}
	}
	for at := filepath.Dir(path); at != "/"; at = filepath.Dir(at) {
		if slices.ContainsFunc(r.Empty(), func(empty string) bool { return sandbox.Within(at, empty) }) {
			break
		}
		dir = at
	}
	return dir
}

// addMountPoints makes what the other paths of a run are mounted on below a directory of links,
// which is read-only in the sandbox, and the links to them.
func addMountPoints(top, dir string, r sandbox.Run) error {
	for _, p := range r.Paths() {
		if sandbox.Within(dir, p.Real) {
			if err := addMountPoint(filepath.Join(top, p.Real), p.Real); err != nil {
				return err
			}
		}
		if p.Name == p.Real || !sandbox.Within(dir, p.Name) {
			continue
		}
		name := filepath.Join(top, p.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.Symlink(p.Real, name); err != nil && !os.IsExist(err) {
			return err
		}
	}
	if p := r.Tasks; p.Name != "" && sandbox.Within(dir, p.Name) {
		return addMountPoint(filepath.Join(top, p.Name), p.Real)
	}
	return nil
}

// addMountPoint makes an empty directory, or an empty file if the path is no directory.
func addMountPoint(point, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.MkdirAll(point, 0o700)
	}
	if err := os.MkdirAll(filepath.Dir(point), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(point, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// linkRef makes a hard link to a file, or a copy where there can be none, such as on another file
// system. A symbolic link is an error: the path had none when it was checked.
func linkRef(path, name string) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	open := fmt.Sprintf("/proc/self/fd/%d", fd)
	err = unix.Linkat(unix.AT_FDCWD, open, unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
	if err == nil || err == unix.EEXIST {
		return nil
	}
	return copyRef(open, name)
}

func copyRef(path, name string) error {
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		return os.NewSyscallError("stat", err)
	}
	if info.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("it is no regular file any more")
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return cmp.Or(err, to.Close())
}
