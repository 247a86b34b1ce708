package worker

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/stores/dirtree"
)

// A process is one worker from its start to its end. Besides its supervisor, two goroutines
// read its output and one waits for its exit.
type process struct {
	pool    *Pool
	pid     int
	dir     string
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	tail    tail
	sandbox Sandbox
	waiting sync.WaitGroup

	room    chan struct{} // a token for each of its questions
	exited  chan struct{} // closed when nothing of its session is left
	silent  chan struct{} // closed at the end of its output
	retired chan struct{} // closed when it may get no more questions

	mu         sync.Mutex            // guards the fields below
	asked      map[envelope.ID]*call // a nil call was given up
	answers    int
	strayLines int
	retiring   bool
	stuck      bool // it did not answer in time
	reaped     bool // its PID may be reused
	status     unix.WaitStatus
}

// start starts a process in a new session.
func (p *Pool) start() (*process, error) {
	pr, err := p.spawn()
	if err != nil {
		if e, ok := errors.AsType[*exec.Error](err); ok {
			err = e.Err // without the name, which StartError adds
		}
		return nil, &StartError{Command: p.spec.Argv[0], Err: err}
	}
	p.live.Add(1)
	return pr, nil
}

func (p *Pool) spawn() (*process, error) {
	dir, err := os.MkdirTemp(p.spec.Dir, "worker-")
	if err != nil {
		return nil, err
	}
	pr := &process{
		pool: p, dir: dir,
		room:   make(chan struct{}, p.spec.InFlight),
		exited: make(chan struct{}), silent: make(chan struct{}), retired: make(chan struct{}),
		asked: map[envelope.ID]*call{},
	}
	cmd, err := pr.command()
	if err == nil && p.spec.Enclose != nil {
		if pr.sandbox, err = p.spec.Enclose(cmd, pr.dir); err != nil {
			err = errors.Join(err, closeAll(cmd.Stdin.(*os.File), cmd.Stdout.(*os.File), cmd.Stderr.(*os.File)))
		}
	}
	if err == nil {
		started := make(chan error, 1)
		pr.waiting.Go(func() { pr.run(cmd, started) })
		err = <-started
		err = errors.Join(err, closeAll(cmd.Stdin.(*os.File), cmd.Stdout.(*os.File), cmd.Stderr.(*os.File)))
		if pr.sandbox.active() {
			pr.sandbox.Release()
		}
	}
	if err != nil {
		pr.waiting.Wait()
		pr.discard()
		return nil, err
	}
	return pr, nil
}

// command makes the pipes. Their other ends belong to the command.
func (pr *process) command() (cmd *exec.Cmd, err error) {
	s := pr.pool.spec
	cmd = exec.Command(s.Argv[0], s.Argv[1:]...)
	cmd.Env = append(s.Env[:len(s.Env):len(s.Env)], s.Mark+"="+pr.dir)
	cmd.Dir = s.Cwd
	if cmd.Dir == "" {
		cmd.Dir = pr.dir
	}
	// The kernel kills the process if the daemon is killed. Setsid groups its children.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	if cmd.Err != nil {
		return nil, cmd.Err
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, closeAll(in, stdin))
	}
	stderr, errs, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, closeAll(in, stdin, stdout, out))
	}
	pr.stdin, pr.stdout, pr.stderr = stdin, stdout, stderr
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	return cmd, nil
}

// run starts the command and waits for its end. Its thread must live until then, because
// Pdeathsig refers to the thread.
func (pr *process) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	if err == nil {
		pr.pid = cmd.Process.Pid
	}
	started <- err
	if err != nil {
		return
	}
	for errors.Is(unix.Waitid(unix.P_PID, pr.pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		continue // it isn't reaped yet, so its PID is valid
	}
	pr.signal(unix.SIGKILL) // processes that it left
	pr.mu.Lock()
	pr.reaped = true
	_ = cmd.Wait() // the exit is in its state
	if state, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		pr.status = unix.WaitStatus(state)
	}
	pr.mu.Unlock()
	pr.retire()
	close(pr.exited)
}

// signal signals the process group of the session.
func (pr *process) signal(sig unix.Signal) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if !pr.reaped {
		_ = unix.Kill(-pr.pid, sig) // an error means that it is gone
	}
}

// retire stops giving it questions. A question that it hasn't read is withdrawn.
func (pr *process) retire() {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if !pr.retiring {
		pr.retiring = true
		close(pr.retired)
		_ = pr.stdin.SetWriteDeadline(time.Unix(1, 0)) // an error means that it is closed
	}
}

// end ends the process and waits until nothing of it is left. It reports whether a signal
// was necessary.
func (pr *process) end() bool {
	_ = pr.stdin.Close() // nothing is buffered
	pr.mu.Lock()
	stuck := pr.stuck
	pr.mu.Unlock()
	patience := pr.pool.spec.Grace
	if stuck {
		patience = 0
	}
	if pr.waitExit(patience) {
		return false
	}
	pr.signal(unix.SIGTERM)
	pr.signal(unix.SIGCONT) // a stopped process doesn't get SIGTERM
	if !pr.waitExit(pr.pool.spec.Grace) {
		pr.signal(unix.SIGKILL)
		<-pr.exited
	}
	return true
}

// waitExit waits for the exit, and less long if the pool is closed meanwhile.
func (pr *process) waitExit(grace time.Duration) bool {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for closing := pr.pool.closing; ; {
		select {
		case <-pr.exited:
			return true
		case <-timer.C:
			select {
			case <-pr.exited:
				return true
			default:
				return false
			}
		case <-closing:
			closing = nil
			timer.Reset(min(grace, pr.pool.grace))
		}
	}
}

// discard closes the pipes.
func (pr *process) discard() {
	if pr.stdin != nil {
		_ = closeAll(pr.stdin, pr.stdout, pr.stderr) // nothing can be lost
	}
	if pr.sandbox.active() {
		pr.sandbox.Close()
	}
	if err := dirtree.Remove(pr.dir); err != nil {
		pr.pool.notice(err)
	}
}

func closeAll(files ...*os.File) error {
	var all error
	for _, f := range files {
		all = errors.Join(all, f.Close())
	}
	return all
}
