package runner

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/cgroup"
	"mailboxd/internal/sandboxing/sandbox"
)

// A Sandbox says how bubblewrap runs a process. The zero value is no sandbox.
type Sandbox struct {
	Program string   // the absolute path of bubblewrap, or WeakerProgram
	Options []string // as sandbox.Settings.Options or WeakerOptions returns them
	ByName  bool     // this bubblewrap doesn't take descriptors for paths
	Network []string // the arguments of a gate, as sandbox.GateArguments returns them; none: no network

	Limits cgroup.Limits
}

// WeakerProgram is the program of a weaker sandbox: this one restricts itself and becomes the
// agent.
const WeakerProgram = "/proc/self/exe"

// ConfineName is the argument that makes this program a weaker sandbox. No command of the
// command line has this name.
const ConfineName = "confine"

// A box holds what bubblewrap gets from its parent for one run. A nil box is no sandbox.
type box struct {
	program string
	options []string
	stdin   int // a sealed copy, so that nobody can write to the request through /proc
	status  int
	enter   string // the number of the socket to the gate; "": none
	broker  string // the number of the socket to the tool broker; "": none
	gate    *helper
	group   *cgroup.Group // nil: no limits
	files   []int         // descriptors from 3 on, in the order of options; status is one of them
	made    bool          // the sandbox was seen complete while it existed
}

// openBox prepares the sandbox of a run; nil without one. It closes everything after an error.
// Without stdin (-1), the process has that of its caller.
func (s Spec) openBox(f *processTable, stdin int) (b *box, err error) {
	if s.Sandbox.Program == "" {
		return nil, nil
	}
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) // what a careless parent left; before Linux 5.11, only the keeper has none
	b = &box{program: s.Sandbox.Program, stdin: -1, status: -1}
	defer func() {
		if err != nil {
			b.close()
			b, err = nil, fmt.Errorf("prepare sandbox: %w", err)
		}
	}()
	if stdin >= 0 {
		if b.stdin, err = sealedCopy("stdin", stdin); err != nil {
			return b, err
		}
	}
	if b.status, err = unix.MemfdCreate("status", unix.MFD_CLOEXEC); err != nil {
		return b, err
	}
	status := b.pass(b.status)
	makeFilter := sandbox.Filter
	if b.weaker() {
		makeFilter = sandbox.WeakerFilter
	}
	code, err := makeFilter(os.Getuid() == 0)
	if err != nil {
		return b, err
	}
	filter, err := memory("filter", bytes.NewReader(code))
	if err != nil {
		return b, err
	}
	b.options = []string{sandbox.StatusOption, status, sandbox.FilterOption, b.pass(filter)}
	if s.Sandbox.Limits != (cgroup.Limits{}) {
		if b.group, err = cgroup.New(s.Sandbox.Limits); err != nil {
			return b, err
		}
	}
	options, err := b.resolve(s.Sandbox)
	if b.options = append(b.options, options...); err != nil || len(s.Sandbox.Network) == 0 {
		return b, err
	}
	var socket int
	if b.gate, socket, err = startBeside(f, GateName, func(socket, life int) (int, error) { return forkGate(s, socket, life) }); err != nil {
		return b, err
	}
	b.enter = b.pass(socket)
	return b, nil
}

// weaker reports whether this program makes the sandbox instead of bubblewrap.
func (b *box) weaker() bool { return b.program == WeakerProgram }

// pass adds a descriptor for bubblewrap, and returns its number there.
func (b *box) pass(fd int) string {
	b.files = append(b.files, fd)
	return strconv.Itoa(len(b.files) + 2)
}

// resolve opens the paths of options.
func (b *box) resolve(s Sandbox) ([]string, error) {
	return sandbox.Resolve(s.Options, s.ByName, func(path string) (string, error) {
		fd, err := openPath(path)
		switch {
		case err != nil:
			return "", err
		case s.ByName: // this bubblewrap would leave it open in the agent
			return "", unix.Close(fd)
		}
		return b.pass(fd), nil
	})
}

// openPath opens a path for bubblewrap. A symbolic link is an error: the path had none when
// the configuration was read, and an agent that made one could point it anywhere.
func openPath(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err == unix.ELOOP {
		return -1, fmt.Errorf("%s: a part of the path has become a symbolic link: %w", path, err)
	}
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// wrap returns the program and the arguments that run a command in the sandbox.
func (b *box) wrap(argv []string, attr *syscall.ProcAttr) (string, []string) {
	attr.Files[0] = uintptr(b.stdin)
	for _, fd := range b.files {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	attr.Dir = "/" // the working directory is an option
	if b.group != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, b.group.FD()
	}
	if b.enter != "" || b.broker != "" {
		argv = slices.Concat([]string{sandbox.EnterPath, EnterName, b.enter + "," + b.broker}, argv)
	}
	if b.weaker() {
		return b.program, slices.Concat([]string{"mailboxd", ConfineName}, b.options, []string{"--"}, argv)
	}
	return b.program, slices.Concat([]string{"bwrap"}, b.options, []string{"--"}, argv)
}

// inspect notes whether the sandbox is complete, before a signal ends bubblewrap without a report.
// The first process in it loads the filter after all mounts.
func (b *box) inspect() {
	if b == nil || b.weaker() || b.made {
		return
	}
	if status := b.readStatus(); status.Init != 0 {
		b.made = filtersOf(strconv.Itoa(status.Init)) > filtersOf("self")
	}
}

// filtersOf returns how many seccomp filters a process has; before Linux 5.9, whether it has any.
func filtersOf(pid string) (n int) {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) == "Seccomp" || string(name) == "Seccomp_filters" { // in this order
			n, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	return n
}

// conclude adds to the exit what bubblewrap reported. Bubblewrap runs the command only after
// the whole set-up, so an agent that ran was in the sandbox. An exit by a signal from elsewhere
// says nothing.
func (b *box) conclude(exit *task.Exit, errorFile string) {
	if b == nil {
		return
	}
	status := b.readStatus()
	switch {
	case b.weaker() && status.Began:
		exit.Confined = true
	case status.Began, b.made:
		exit.Sandboxed = true
	case exit.Cause == "" && (exit.Signal == "" || status.Init == 0):
		exit.Cause, exit.Reason = task.CauseSandbox, complaint(errorFile)
	}
	// A signal ends bubblewrap before the agent, whose grace period goes on.
	if exit.Cause != "" && !b.weaker() {
		exit.Survivors = nil
	}
	if failed := exit.Code != 0 || exit.Signal != ""; failed && exit.Cause == "" && b.group != nil && b.group.OutOfMemory() {
		exit.Cause = task.CauseMemory
	}
	exit.Survivors = slices.DeleteFunc(exit.Survivors, func(s task.Survivor) bool { return s.PID == status.Init })
	if len(exit.Survivors) == 0 {
		exit.Survivors = nil
	}
}

func (b *box) readStatus() sandbox.Status {
	if _, err := unix.Seek(b.status, 0, io.SeekStart); err != nil {
		return sandbox.Status{}
	}
	text, err := readAll(b.status, maxRecord)
	if err != nil {
		return sandbox.Status{} // claims nothing
	}
	return sandbox.ReadStatus(text)
}

// complaint returns the error of bubblewrap, which is the only content of standard error: no
// agent ran.
func complaint(errorFile string) string {
	fd, err := open(errorFile, unix.O_RDONLY)
	if err != nil {
		return "bwrap failed and its error could not be read: " + err.Error()
	}
	defer unix.Close(fd)
	const enough = 500
	text, _ := readAll(fd, enough)
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return "bwrap failed without an error message"
	}
	return string(bytes.ToValidUTF8(text, nil))
}

// release closes what bubblewrap has taken over.
func (b *box) release() {
	if b == nil {
		return
	}
	for _, fd := range append(b.files, b.stdin) {
		if fd != b.status && fd >= 0 {
			unix.Close(fd)
		}
	}
	b.files, b.stdin = nil, -1
}

func (b *box) close() {
	if b == nil {
		return
	}
	b.release()
	if b.status >= 0 {
		unix.Close(b.status)
		b.status = -1
	}
	b.gate.end()
	b.gate = nil
	if b.group != nil {
		_ = b.group.Remove() // a later run removes it
		b.group = nil
	}
}

// sealedCopy returns a copy of a file in memory that nobody can change.
func sealedCopy(name string, from int) (int, error) {
	fd, err := memory(name, descriptor(from))
	if err != nil {
		return -1, err
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// memory returns a file in memory with some content, at its start.
func memory(name string, content io.Reader) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, err
	}
	_, err = io.Copy(descriptor(fd), content)
	if err == nil {
		_, err = unix.Seek(fd, 0, io.SeekStart)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// A descriptor reads and writes an open file.
type descriptor int

func (d descriptor) Read(p []byte) (n int, err error) {
	err = uninterrupted(func() (err error) {
		n, err = unix.Read(int(d), p)
		return err
	})
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return max(n, 0), err
}

func (d descriptor) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		err = uninterrupted(func() (err error) {
			more, err = unix.Write(int(d), p[n:])
			return err
		})
		n += max(more, 0)
	}
	return n, err
}
