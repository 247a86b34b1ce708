// Package runner runs one process in a run directory and reports how it ended. The
// directory has all facts about the run, so after a crash another process can read what
// happened and end the rest of the run.
package runner

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
)

// DirVariable is the environment variable with the run directory. It identifies a process
// of a run without any record.
const DirVariable = "MAILBOX_RUN_DIR"

// Files in a run directory, all with mode 0600.
const (
	StdoutFile = "stdout"
	StderrFile = "stderr"
	MetaFile   = "meta.json"
	ExitFile   = "exit.json"
)

// ErrDetach is the cause with which a caller leaves a run to its keeper: the run continues.
var ErrDetach = errors.New("the daemon leaves its runs to the keeper")

// A Spec says what to run and within which limits. Zero is no limit.
type Spec struct {
	Dir   string   // the run directory: absolute, existing, without earlier output
	Argv  []string // Argv[0] is an absolute path, or a bare name on the caller's PATH
	Env   []string // the whole environment except DirVariable; nothing is inherited
	Cwd   string   // "" is Dir
	Stdin string   // a file, opened read-only; "" is /dev/null

	Timeout     time.Duration // for the whole run
	IdleTimeout time.Duration // between signs of activity: output, or a change of Progress
	Progress    string        // a file whose changes count as activity; "" for none
	ExitTimeout time.Duration // between the last change of Answer and the exit
	Answer      string        // a file that holds the answer once it isn't empty; "" for none
	Deadline    time.Time     // on the wall clock, also after changes of it
	Lease       string        // a file with the time since boot, in nanoseconds, at which the run ends unless the file changes; "" for none
	MaxOutput   int64         // bytes, for each of stdout, stderr and Answer
	Grace       time.Duration // between SIGTERM and SIGKILL, at the deadline half a second at most; zero: kill at once
	CwdResolved bool          // a symbolic link in Cwd is an error: somebody made it after Cwd was checked
	Recorded    bool          // meta.json is required; see Keepers.Run

	Sandbox Sandbox // zero: none
	Setup   Setup   // runs before Argv; zero: none
	Broker  string  // standard input of the tool broker, which has secrets; "": none

	step     step   // that the keeper runs
	stdout   int    // of the step after a setup; standard output of others is created
	path     string // resolved path of Argv[0]; "": look it up on PATH
	toolsURL string // of the tool broker; "": there is none, or the first step in the sandbox has it
}

// A SpawnError says why nothing was started.
type SpawnError struct {
	Command string // Argv[0]
	Err     error
	Setup   bool // it is the command of the setup
}

func (e *SpawnError) Error() string { return "start " + e.Command + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *SpawnError) Unwrap() error { return e.Err }

// Run runs the process until nothing is left of its session. When ctx ends or a limit is
// reached, Run ends the process: SIGTERM to the group, and SIGKILL after the grace period,
// or at once if there is too much output. It ends remaining processes in the same way.
//
// The error is a *SpawnError if nothing was started. Any other error has a complete Exit,
// and says that exit.json or meta.json couldn't be written. A process that exits 3 is an
// answer, not an error.
//
// Started, unless nil, is called once while the process runs, and before Run returns.
func Run(ctx context.Context, s Spec, started func(Process)) (task.Exit, error) {
	var noting sync.WaitGroup
	defer noting.Wait()
	var book *record
	e, err := run(ctx, nil, s, func(m Meta) {
		if book != nil {
			book.replace(m)
			return
		}
		book = newRecord(s.Dir, m)
		book.create()
		if started != nil {
			noting.Go(func() { started(m.Process) })
		}
	})
	if err != nil {
		return task.Exit{}, err
	}
	return e.exit, book.finish(e.exit)
}

// An ending is the end of a run that began.
type ending struct {
	exit   task.Exit
	silent bool // a normal exit without output or remaining processes
}

// run is Run without records. Begun is called for each step. The error is a *SpawnError.
func run(ctx context.Context, f *processTable, s Spec, begun func(Meta)) (ending, error) {
	if s.Setup.given() && len(s.Argv) > 0 {
		return runSteps(ctx, f, s, begun)
	}
	return runStep(ctx, f, s, begun)
}

// runStep runs one process. The error is a *SpawnError.
func runStep(ctx context.Context, f *processTable, s Spec, begun func(Meta)) (ending, error) {
	r, err := begin(ctx, f, s)
	if err != nil {
		return ending{}, err
	}
	defer r.close()
	begun(r.meta())
	cause := r.watch(ctx)
	if cause != "" {
		r.stop(cause)
	}
	e := ending{exit: r.conclude(cause)}
	fault.Point("exited")
	if cause == task.CauseInterrupted {
		e.exit.Reason = context.Cause(ctx).Error()
	}
	printed, _ := r.output.size()
	e.silent = e.exit.Code == 0 && e.exit.Cause == "" && len(e.exit.Survivors) == 0 && e.exit.OutputBytes == 0 && printed == 0
	return e, nil
}

// An attempt is a process from its start until nothing is left of it.
type attempt struct {
	spec     Spec
	table    *processTable // of the parent and subreaper; nil: none
	argv     []string      // with the resolved command
	self     Process
	life     *childProcess
	mark     runMark
	output   output
	box      *box    // nil: no sandbox
	broker   *helper // nil: no tools
	began    time.Time
	graceEnd time.Time // SIGKILL follows after this time
}

// watch waits until the process has ended by itself, which returns "", or until there is a
// cause to end it. If both are noticed together, the earlier one counts.
func (r *attempt) watch(ctx context.Context) task.Cause {
	limits := newLimits(r.spec, r.output, r.began)
	defer context.AfterFunc(ctx, r.life.interrupt)()
	for now := r.began; ; now = time.Now() {
		r.life.wait(ctx, now.Add(limits.next(now)))
		if r.life.hasExited() {
			return ""
		}
		if ctx.Err() != nil {
			return task.CauseInterrupted
		}
		if cause := limits.exceeded(time.Now()); cause != "" {
			return cause
		}
	}
}

// lateGrace is the longest grace period at a deadline, because the run has to be over by
// then.
const lateGrace = 500 * time.Millisecond

// stop ends the process group. The process isn't reaped yet, so its PID can't be reused.
// There is no grace period for too much output: it would continue.
func (r *attempt) stop(cause task.Cause) {
	grace := r.spec.Grace
	switch cause {
	case task.CauseDeadline, task.CauseLease:
		grace = min(grace, lateGrace)
	case task.CauseOutputTooLarge:
		grace = 0
	}
	r.graceEnd = time.Now().Add(grace)
	r.box.inspect()
	if cause != task.CauseOutputTooLarge {
		r.signalGroup(unix.SIGTERM)
		r.signalGroup(unix.SIGCONT) // a stopped process doesn't get SIGTERM
	}
	if !r.life.waitUntil(r.graceEnd) {
		r.signalGroup(unix.SIGKILL)
		r.life.waitUntil(time.Time{})
	}
}

func (r *attempt) signalGroup(sig unix.Signal) {
	_ = unix.Kill(-r.self.PID, sig) // an error means that it is gone
}

// conclude reaps the process, ends remaining processes, and returns the exit.
func (r *attempt) conclude(cause task.Cause) task.Exit {
	exit := task.Exit{
		Cause:    cause,
		PID:      r.self.PID,
		Started:  r.began,
		Finished: r.life.ended,
		Wall:     r.life.ended.Sub(r.began),
	}
	state, err := r.table.wait(r.self.PID)
	exit.Code, exit.Signal = -1, "unknown"
	if err == nil {
		exit.Code, exit.Signal = status(state)
	}
	r.broker.leave() // its servers aren't what the agent left
	if !errors.Is(unix.Kill(-r.self.PID, 0), unix.ESRCH) || r.table.hasOrphans() {
		if exit.Signal != "" { // bubblewrap could not report the end of the agent
			r.box.inspect()
		}
		if cause == "" {
			r.graceEnd = time.Now().Add(r.spec.Grace)
		}
		exit.Survivors = endProcesses(r.remaining, r.graceEnd)
	}
	large := r.output.cut(r.spec.MaxOutput)
	if large = cutAnswer(r.spec.Answer, r.spec.MaxOutput) || large; large && cause == "" {
		exit.Cause = task.CauseOutputTooLarge // the process was faster than the check
	}
	exit.OutputBytes, _ = outputBytes(r.spec.Dir, r.spec.Answer) // uncounted bytes aren't missed later
	r.box.conclude(&exit, inDir(r.spec.Dir, r.spec.errorFile()))
	return exit
}

// remaining lists the processes that are left: in the session and the group, and orphans of
// the table.
func (r *attempt) remaining() []entry {
	all := processes()
	if r.table != nil {
		return r.table.remaining(r, all)
	}
	for _, e := range all {
		if e.PID == r.self.PID {
			return nil // the run's process is reaped and its PID reused, so no process of the run held it
		}
	}
	return only(all, func(e entry) bool { return e.inGroup(r.self.PID) })
}

func (r *attempt) meta() Meta {
	return Meta{Argv: r.argv, Cwd: r.spec.Cwd, Process: r.self, Mark: uint64(r.mark), StartedAt: r.began}
}

func (r *attempt) close() {
	r.table.remove(r)
	r.life.close()
	r.broker.leave()
	r.output.close()
	r.box.close()
}

func inDir(dir, name string) string { return filepath.Join(dir, name) }
