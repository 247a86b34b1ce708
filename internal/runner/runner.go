// Package runner runs one process in a run directory and says how it ended.
// Everything that matters about a run lies in that directory, so whoever comes
// after a crash can tell what happened and end what is left of it.
package runner

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/fault"
	"mailboxd/internal/task"
)

// DirVariable is set in the environment of every run to its directory. It is
// how a process of a run is recognised when nothing else is known about it.
const DirVariable = "MAILBOX_RUN_DIR"

// The files that Run makes in a run directory, all with mode 0600.
const (
	StdoutFile = "stdout"
	StderrFile = "stderr"
	MetaFile   = "meta.json"
	ExitFile   = "exit.json"
)

// ErrDetach is the cause with which a caller leaves a run to whoever hosts it:
// the run goes on.
var ErrDetach = errors.New("the daemon leaves its runs to the keeper")

// A Spec says what to run and within which limits. A zero limit is no limit.
type Spec struct {
	Dir   string   // the run directory: absolute, existing, without earlier output
	Argv  []string // Argv[0] is an absolute path, or a bare name on our PATH
	Env   []string // all there is, apart from DirVariable; nothing is inherited
	Cwd   string   // "" is Dir
	Stdin string   // a file, opened read-only; "" is /dev/null

	Timeout     time.Duration // for the whole run
	IdleTimeout time.Duration // between signs of life: output, or a change of Progress
	Progress    string        // a file that shows life when it changes; "" for none
	ExitTimeout time.Duration // between the last change of Answer and the exit
	Answer      string        // a file that holds the answer once it is not empty; "" for none
	Deadline    time.Time     // on the wall clock, wherever that is set to
	MaxOutput   int64         // bytes, for each of stdout, stderr and Answer
	Grace       time.Duration // between SIGTERM and SIGKILL, at the deadline half a second at most; zero kills at once
	Recorded    bool          // what was started is to be found in meta.json in any case; see Keepers.Run

	path string // what Argv[0] means where it was said; "": on our own PATH
}

// A SpawnError says why nothing was started.
type SpawnError struct {
	Command string // Argv[0]
	Err     error
}

func (e *SpawnError) Error() string { return "start " + e.Command + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *SpawnError) Unwrap() error { return e.Err }

// Run runs the process to its end and returns when nothing is left of its
// session. When ctx ends, or a limit is reached, the run is ended: SIGTERM to
// the group, and SIGKILL after the grace, or at once when it prints too much.
// What a process left running when it exited is ended in the same way.
//
// The error is a *SpawnError when nothing was started. Any other comes with a
// complete Exit and says that it, or meta.json, could not be written. A process
// that exits 3 is an answer, not an error.
//
// Started, unless nil, is called once while the process runs; Run does not
// return before it has.
func Run(ctx context.Context, s Spec, started func(Process)) (task.Exit, error) {
	var noting sync.WaitGroup
	defer noting.Wait()
	var book *record
	e, err := run(ctx, nil, s, func(m Meta) {
		book = newRecord(s.Dir, m)
		book.make()
		if started != nil {
			noting.Go(func() { started(m.Process) })
		}
	})
	if err != nil {
		return task.Exit{}, err
	}
	return e.exit, book.end(e.exit)
}

// An ending is what became of a run that began.
type ending struct {
	exit   task.Exit
	silent bool // it ended well by itself, and left and printed nothing
}

// run is Run without its records. The error is a *SpawnError.
func run(ctx context.Context, f *family, s Spec, begun func(Meta)) (ending, error) {
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

// An attempt is a process between its start and the moment nothing is left of it.
type attempt struct {
	spec    Spec
	family  *family  // of whoever is parent and subreaper; nil: nobody is
	argv    []string // as started: the command is resolved
	self    Process
	life    *life
	mark    mark
	output  output
	began   time.Time
	patient time.Time // until then, SIGTERM is enough
}

// watch waits until the process has ended by itself, which it reports as "",
// or until there is a cause to end it. What happened first counts, also when we
// notice both at once.
func (r *attempt) watch(ctx context.Context) task.Cause {
	limits := newLimits(r.spec, r.output, r.began)
	defer context.AfterFunc(ctx, r.life.look)()
	for now := r.began; ; now = time.Now() {
		r.life.wait(ctx, now.Add(limits.next(now)))
		if r.life.over() {
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

// lateGrace is all the grace there is at a deadline: what is to be over by
// then may not take its leave for long.
const lateGrace = 500 * time.Millisecond

// stop ends the group. Its number cannot have been taken by another group, for
// the process is not reaped yet. One that prints too much has no grace: it would
// print through that.
func (r *attempt) stop(cause task.Cause) {
	patience := r.spec.Grace
	switch cause {
	case task.CauseDeadline:
		patience = min(patience, lateGrace)
	case task.CauseOutputTooLarge:
		patience = 0
	}
	r.patient = time.Now().Add(patience)
	if cause != task.CauseOutputTooLarge {
		r.signalGroup(unix.SIGTERM)
		r.signalGroup(unix.SIGCONT) // one that is stopped would not notice
	}
	if !r.life.endsBy(r.patient) {
		r.signalGroup(unix.SIGKILL)
		r.life.endsBy(time.Time{})
	}
}

func (r *attempt) signalGroup(sig unix.Signal) {
	_ = unix.Kill(-r.self.PID, sig) // it may be gone already, and that is what we want
}

// conclude reaps the process, ends what it left running, and says how it all
// ended.
func (r *attempt) conclude(cause task.Cause) task.Exit {
	exit := task.Exit{
		Cause:    cause,
		PID:      r.self.PID,
		Started:  r.began,
		Finished: r.life.ended,
		Wall:     r.life.ended.Sub(r.began),
	}
	state, err := r.family.bury(r.self.PID)
	exit.Code, exit.Signal = -1, "unknown"
	if err == nil {
		exit.Code, exit.Signal = status(state)
	}
	if !errors.Is(unix.Kill(-r.self.PID, 0), unix.ESRCH) || r.family.hasOrphans() {
		if cause == "" {
			r.patient = time.Now().Add(r.spec.Grace)
		}
		exit.Survivors = end(r.left, r.patient)
	}
	large := r.output.cut(r.spec.MaxOutput)
	if large = cutAnswer(r.spec.Answer, r.spec.MaxOutput) || large; large && cause == "" {
		exit.Cause = task.CauseOutputTooLarge // it was quicker than our look at it
	}
	exit.OutputBytes, _ = said(r.spec.Dir, r.spec.Answer) // what cannot be counted is not missed later
	return exit
}

// left lists what the process left: in its session and group, and of the
// family's orphans.
func (r *attempt) left() []entry {
	all := processes()
	if r.family != nil {
		return r.family.left(r, all)
	}
	for _, e := range all {
		if e.PID == r.self.PID {
			return nil // ours is reaped: somebody new has its number, so nothing of ours held it
		}
	}
	return only(all, func(e entry) bool { return e.in(r.self.PID) })
}

func (r *attempt) meta() Meta {
	return Meta{Argv: r.argv, Cwd: r.spec.Cwd, Process: r.self, Mark: uint64(r.mark), StartedAt: r.began}
}

func (r *attempt) close() {
	r.family.forget(r)
	r.life.close()
	r.output.close()
}

func inDir(dir, name string) string { return filepath.Join(dir, name) }
