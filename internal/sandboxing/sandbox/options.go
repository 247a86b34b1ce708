package sandbox

import (
	"cmp"
	"slices"
	"strings"
)

// A Run lists the paths of one run. All are absolute and exist. A path that doesn't exist is
// left out, so nothing is created outside of the sandbox.
type Run struct {
	Dir   string // the run directory: read-only
	Work  string // a directory in it: writable
	Cwd   Path   // the working directory; zero: Work
	Home  string // becomes an empty directory; "": none
	Read  []Path // refs, programs and configured paths
	Write []Path
	Refs  []Path // directories with links to many files of the task, which appear under Name

	Logins []string // paths of Write that are writable in ReadOnly too

	Root bool // the user is root, and appears as another user

	System   []Path   // directories of the operating system; a link where Name and Real differ
	Masked   Masked   // what becomes empty in these
	Kernel   []string // settings of the kernel below /proc, which become read-only
	Fixed    []string // read-only paths inside of writable ones
	Sessions Path     // a writable directory that appears under Name, where the program keeps its sessions; zero: none
	Tasks    Path     // the task file of the run, which appears under Name; zero: none
}

// Masked lists files and directories of the system that become empty.
type Masked struct {
	Files, Dirs []string
}

// The options of bubblewrap that name a file by an open descriptor. Options gives them a path
// instead; Resolve opens it.
const (
	bindWritable = "--bind-fd"
	bindReadOnly = "--ro-bind-fd"
)

// isolation gives every sandbox namespaces of its own, and no capabilities, also to root.
// There is no --new-session, --die-with-parent or --disable-userns: the keeper recognizes a
// run by its session and outlives threads, and some agents make a sandbox of their own.
var isolation = []string{
	"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
	"--cap-drop", "ALL",
}

// notRoot shows root as an ordinary user. Without capabilities, a process with the number 0
// can't make a user namespace, which the sandbox of an agent's own needs.
var notRoot = []string{"--uid", "1000", "--gid", "1000"}

// Options returns the options of bubblewrap for a run, without descriptors of the caller and
// without the command. Resolve makes them arguments.
func (s Settings) Options(r Run) []string {
	args := slices.Clone(isolation)
	if r.Root {
		args = append(args, notRoot...)
	}
	for _, p := range r.System {
		if p.Name != p.Real {
			args = append(args, "--symlink", p.Real, p.Name)
			continue
		}
		args = append(args, "--ro-bind", p.Name, p.Name)
	}
	for _, path := range r.Masked.Files {
		args = append(args, "--ro-bind", "/dev/null", path)
	}
	for _, path := range r.Masked.Dirs {
		args = append(args, "--tmpfs", path)
	}
	args = append(args, r.proc()...)
	args = append(args, "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run", "--dir", "/var/tmp")
	if r.Home != "" && r.Home != "/tmp" && r.Home != "/run" {
		args = append(args, "--tmpfs", r.Home)
	}
	args = append(args, s.mounts(r)...)
	if r.Tasks.Real != "" {
		args = append(args, bindWritable, r.Tasks.Real, r.Tasks.Name)
	}
	cwd := r.Cwd.Name
	if cwd == "" {
		cwd = r.Work
	}
	for _, path := range r.Masked.Dirs {
		args = append(args, "--remount-ro", path)
	}
	return append(args,
		"--remount-ro", "/", // the directories made for the mounts
		"--setenv", "TMPDIR", "/tmp", "--chdir", cwd,
	)
}

// proc returns the options for /proc. The settings of the kernel are read-only, and the directory
// of the first process is empty: it belongs to bubblewrap and passes on the exit code.
//
// The kernel allows a sandbox in this sandbox a /proc of its own only if there is one here of which
// nothing is covered. It hides nothing there. An ordinary user can write only settings of its own
// namespaces, so there is such a one, which the empty /run covers then. Root could write all
// settings, so there is none.
func (r Run) proc() (args []string) {
	if !r.Root {
		args = append(args, "--proc", "/run/proc")
	}
	args = append(args, "--proc", "/proc")
	for _, path := range r.Kernel {
		args = append(args, "--ro-bind-try", path, path)
	}
	return append(args, "--tmpfs", "/proc/1", "--remount-ro", "/proc/1")
}

// Paths returns the paths of a run that are mounted where they are, without its task file.
func (r Run) Paths() []Path {
	paths := []Path{{Name: r.Dir, Real: r.Dir}, {Name: r.Work, Real: r.Work}}
	if r.Cwd.Real != "" {
		paths = append(paths, r.Cwd)
	}
	return slices.Concat(paths, r.Read, r.Write)
}

// Empty returns the directories that are made for a run, and those of the system. Nothing else may
// be mounted on them, or above.
func (r Run) Empty() []string {
	dirs := []string{"/proc", "/dev", "/tmp", "/run", "/var/tmp"}
	if r.Home != "" {
		dirs = append(dirs, r.Home)
	}
	for _, p := range r.System {
		dirs = append(dirs, p.Name)
	}
	return dirs
}

// mounts returns the options for the paths of a run, and for links to them.
func (s Settings) mounts(r Run) []string {
	args, paths := s.binds(r)
	return append(args, links(slices.Concat(r.Read, r.Write, []Path{r.Cwd}), paths)...)
}

// binds returns the options for the paths of a run. A directory comes before what is in it, so
// that the inner path decides.
func (s Settings) binds(r Run) (args, paths []string) {
	writable := map[string]bool{r.Dir: false, r.Work: true}
	for _, p := range r.Read {
		writable[p.Real] = false
	}
	canWrite := s.Profile != ReadOnly
	for _, p := range r.Write {
		writable[p.Real] = canWrite
	}
	for _, path := range r.Logins {
		writable[path] = true
	}
	if r.Cwd.Real != "" && r.Cwd.Real != r.Work {
		writable[r.Cwd.Real] = canWrite
	}
	for _, path := range r.Fixed {
		writable[path] = false
	}
	source := map[string]string{}
	for _, p := range r.Refs {
		writable[p.Name], source[p.Name] = false, p.Real
	}
	if r.Sessions.Real != "" {
		writable[r.Sessions.Name], source[r.Sessions.Name] = true, r.Sessions.Real
	}
	for path := range writable {
		paths = append(paths, path)
	}
	slices.Sort(paths) // a parent is a prefix of its children
	for _, path := range paths {
		option := bindReadOnly
		if writable[path] {
			option = bindWritable
		}
		args = append(args, option, cmp.Or(source[path], path), path)
	}
	return args, paths
}

// links returns the options for symbolic links from configured names to real paths, except in
// mounted directories, which have their own.
func links(all []Path, mounted []string) []string {
	var args []string
	made := map[string]bool{}
	for _, p := range all {
		inside := slices.ContainsFunc(mounted, func(dir string) bool { return Within(dir, p.Name) })
		if p.Name == p.Real || inside || made[p.Name] || Within("/usr", p.Name) || Within("/etc", p.Name) {
			continue
		}
		made[p.Name] = true
		args = append(args, "--symlink", p.Real, p.Name)
	}
	return args
}

// Resolve returns the options with descriptors instead of paths. Open opens a path that must
// not contain symbolic links, and returns the number of its descriptor in bubblewrap. If byName
// is set, bubblewrap is too old for descriptors and gets the path, which open has checked.
func Resolve(options []string, byName bool, open func(path string) (number string, err error)) ([]string, error) {
	args := slices.Clone(options)
	for i := 0; i+2 < len(args); i++ {
		if args[i] != bindWritable && args[i] != bindReadOnly {
			continue
		}
		number, err := open(args[i+1])
		if err != nil {
			return nil, err
		}
		if byName {
			args[i] = strings.TrimSuffix(args[i], "-fd")
		} else {
			args[i+1] = number
		}
		i += 2
	}
	return args, nil
}

// Within reports whether a clean absolute path is a directory or below it.
func Within(dir, path string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// Overlap reports whether one of two clean absolute paths contains the other.
func Overlap(a, b string) bool { return Within(a, b) || Within(b, a) }
