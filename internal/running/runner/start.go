package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/sandboxing/sandbox"
	"mailboxd/internal/testtools/fault"
)

// begin starts the process in a new session.
func begin(ctx context.Context, f *processTable, s Spec) (*attempt, error) {
	if len(s.Argv) == 0 {
		return nil, &SpawnError{Command: "nothing", Err: errors.New("the command is empty")}
	}
	r, err := s.start(ctx, f)
	if err != nil {
		return nil, &SpawnError{Command: s.Argv[0], Err: err}
	}
	return r, nil
}

func (s Spec) start(ctx context.Context, f *processTable) (*attempt, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if !filepath.IsAbs(s.Dir) {
		return nil, fmt.Errorf("run directory %q is not absolute", s.Dir)
	}
	s.Cwd = cmp.Or(s.Cwd, s.Dir)
	path, err := s.program()
	if err != nil {
		return nil, err
	}
	stdin, err := openStdin(s.Stdin)
	if err != nil {
		return nil, err
	}
	defer unix.Close(stdin)
	enclosed, err := s.openBox(f, stdin)
	if err != nil {
		return nil, err
	}
	broker, err := s.openBroker(f, enclosed)
	if err != nil {
		enclosed.close()
		return nil, err
	}
	out, err := s.openOutput()
	if err != nil {
		enclosed.close()
		broker.leave()
		return nil, err
	}
	r := &attempt{spec: s, broker: broker, table: f, output: out, box: enclosed, argv: append([]string{path}, s.Argv[1:]...)}
	fault.Point("output-created")
	err = f.spawn(r, func() error { return r.spawn(path, stdin) })
	if err != nil {
		enclosed.close()
		broker.leave()
		s.removeOutput(out)
		return nil, err
	}
	enclosed.release()
	fault.Point("spawned")
	return r, nil
}

// spawn starts the process of the run.
func (r *attempt) spawn(path string, stdin int) error {
	s, pidfd, before := r.spec, -1, ticks()
	dir, closeDir, err := s.workingDir()
	if err != nil {
		return err
	}
	defer closeDir()
	attr := &syscall.ProcAttr{
		Dir:   dir,
		Env:   append(slices.Clone(s.Env), DirVariable+"="+s.Dir), // never nil: nil would inherit the daemon's
		Files: []uintptr{uintptr(stdin), uintptr(r.output.stdout), uintptr(r.output.stderr)},
		Sys:   &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd},
	}
	argv := s.Argv
	if s.toolsURL != "" {
		argv, attr.Env = sandbox.AddTools(argv, attr.Env, s.toolsURL)
	}
	if r.box != nil {
		path, argv = r.box.wrap(r.argv, attr)
	}
	pid, err := startProcess(path, argv, attr)
	if err != nil {
		return notStarted(s.Cwd, err)
	}
	r.began, r.self = time.Now(), identify(pid, before, ticks())
	r.life = newChildProcess(pid, pidfd)
	return nil
}

// workingDir returns the path for the process to change to. A resolved Cwd is opened without
// following links, and the path is that of the open directory: nothing can change between
// the check and the start.
func (s Spec) workingDir() (path string, done func(), err error) {
	if !s.CwdResolved {
		return s.Cwd, func() {}, nil
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, s.Cwd, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if errors.Is(err, unix.ELOOP) {
		return "", nil, fmt.Errorf("working directory %s: became a symbolic link after the task was checked", s.Cwd)
	}
	if err != nil {
		return "", nil, fmt.Errorf("working directory %s: %w", s.Cwd, err)
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), func() { unix.Close(fd) }, nil
}

// notStarted returns why a process wasn't started. The kernel gives the same error for an
// unusable program and an unusable working directory; notStarted names the directory if it
// is the reason.
func notStarted(cwd string, err error) error {
	if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.EACCES) {
		return err
	}
	if wrong := unix.Access(cwd+"/.", unix.X_OK); wrong != nil {
		return fmt.Errorf("working directory %s: %w", cwd, wrong)
	}
	return err
}

func (s Spec) program() (string, error) {
	if s.path != "" {
		return s.path, nil
	}
	return command(s.Argv[0])
}

// command resolves the name of a program. Errors of a path appear at exec. A relative path
// is refused, because it depends on the working directory.
func command(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if strings.Contains(name, "/") {
		return "", errors.New("is a relative path")
	}
	path, err := exec.LookPath(name)
	if err != nil {
		if bare, ok := errors.AsType[*exec.Error](err); ok {
			return "", bare.Err // without the name, which the caller adds
		}
		return "", err
	}
	return path, nil
}

// openStdin opens a regular file or /dev/null; other files could block.
func openStdin(path string) (int, error) {
	return open(cmp.Or(path, os.DevNull), unix.O_RDONLY)
}

// startProcess starts a program that may just have been written. The kernel returns ETXTBSY
// while any process has it open for writing, as a child may between fork and exec.
func startProcess(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	const longest = 64 * time.Millisecond
	for pause := time.Millisecond; ; pause *= 2 {
		pid, err := syscall.ForkExec(path, argv, attr)
		if !errors.Is(err, unix.ETXTBSY) || pause > longest {
			return pid, err
		}
		time.Sleep(pause)
	}
}
