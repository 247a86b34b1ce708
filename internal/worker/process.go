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
)

// A process is one worker from its start to its end. Besides its host, two
// goroutines read what it prints and one waits for its exit.
type process struct {
	pool    *Pool
	pid     int
	dir     string
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	tail    tail
	waiting sync.WaitGroup

	room    chan struct{} // one for each question it has
	exited  chan struct{} // closed when nothing of its session is left
	silent  chan struct{} // closed when its output has ended
	retired chan struct{} // closed when it must get no more questions

	mu       sync.Mutex            // guards what follows
	asked    map[envelope.ID]*call // nil: nobody waits for that answer any more
	answers  int
	junk     int
	retiring bool
	stuck    bool // it did not answer in time
	reaped   bool // its number may be somebody else's
	status   unix.WaitStatus
}

// start starts a process in a session of its own.
func (p *Pool) start() (*process, error) {
	pr, err := p.spawn()
	if err != nil {
		if e, ok := errors.AsType[*exec.Error](err); ok {
			err = e.Err // without the name, which StartError gives
		}
		return nil, &StartError{Command: p.spec.Argv[0], Err: err}
	}
	p.living.Add(1)
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
	if err == nil {
		started := make(chan error, 1)
		pr.waiting.Go(func() { pr.run(cmd, started) })
		err = <-started
		err = errors.Join(err, closeAll(cmd.Stdin.(*os.File), cmd.Stdout.(*os.File), cmd.Stderr.(*os.File)))
	}
	if err != nil {
		pr.waiting.Wait()
		pr.discard()
		return nil, err
	}
	return pr, nil
}

// command makes the pipes. Their far ends are the command's.
func (pr *process) command() (cmd *exec.Cmd, err error) {
	s := pr.pool.spec
	cmd = exec.Command(s.Argv[0], s.Argv[1:]...)
	cmd.Env = append(s.Env[:len(s.Env):len(s.Env)], s.Mark+"="+pr.dir)
	cmd.Dir = s.Cwd
	if cmd.Dir == "" {
		cmd.Dir = pr.dir
	}
	// Should we be killed, the kernel kills it. Setsid lets us find its children.
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

// run starts the command and waits for its end. The thread that starts it must
// not end before, for that is what Pdeathsig goes by.
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
		continue // it is not reaped yet, so its number is its own
	}
	pr.signal(unix.SIGKILL) // what it left running
	pr.mu.Lock()
	pr.reaped = true
	_ = cmd.Wait() // how it ended is in its state
	if state, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		pr.status = unix.WaitStatus(state)
	}
	pr.mu.Unlock()
	pr.retire()
	close(pr.exited)
}

// signal signals the whole session's group.
func (pr *process) signal(sig unix.Signal) {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if !pr.reaped {
		_ = unix.Kill(-pr.pid, sig) // it may be gone already, and that is what we want
	}
}

// retire gives it no more questions. One that it does not read now, it shall
// not get.
func (pr *process) retire() {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if !pr.retiring {
		pr.retiring = true
		close(pr.retired)
		_ = pr.stdin.SetWriteDeadline(time.Unix(1, 0)) // closed already: nothing is being written
	}
}

// end ends the process and waits until nothing of it is left. It reports
// whether it had to be signalled.
func (pr *process) end() bool {
	_ = pr.stdin.Close() // nothing was buffered
	pr.mu.Lock()
	stuck := pr.stuck
	pr.mu.Unlock()
	patience := pr.pool.spec.Grace
	if stuck {
		patience = 0
	}
	if pr.within(patience) {
		return false
	}
	pr.signal(unix.SIGTERM)
	pr.signal(unix.SIGCONT) // one that is stopped would not notice
	if !pr.within(pr.pool.spec.Grace) {
		pr.signal(unix.SIGKILL)
		<-pr.exited
	}
	return true
}

// within waits for the exit; less patiently when the pool is closed meanwhile.
func (pr *process) within(grace time.Duration) bool {
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

// discard lets go of all that is left.
func (pr *process) discard() {
	if pr.stdin != nil {
		_ = closeAll(pr.stdin, pr.stdout, pr.stderr) // nothing is lost by it
	}
	if err := os.RemoveAll(pr.dir); err != nil {
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
