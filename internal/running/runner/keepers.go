package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
)

// Keepers runs processes in a keeper: another process of this program, which outlives the
// daemon. There is a keeper for each build with runs; this build's keeper is started when
// first needed. Only OpenKeepers makes Keepers. The methods may be called concurrently, but
// Close only after all others have returned.
type Keepers struct {
	root  *os.Root
	build string
	argv  []string

	starting sync.Mutex // allows one start at a time; guards child
	child    int        // the keeper to reap; 0: none

	mu        sync.Mutex      // guards the fields below
	idle      []*connection   // connections to this build's keeper
	unwritten map[string]bool // runs whose end only the keeper holds, by directory
	known     []string        // runs of unwritten whose end is stored; the keeper doesn't know yet
	killed    []lifetime      // killed keepers since the boot
}

// sweepGrace is the grace period of a run without a known one.
const sweepGrace = 5 * time.Second

// OpenKeepers opens the directory of the keepers, and creates it with mode 0700 if
// necessary. The build distinguishes programs that share the directory. The command argv,
// followed by the directory and the build, must start a process that only calls Keep.
func OpenKeepers(dir, build string, argv []string) (*Keepers, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open keepers: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open keepers: %w", err)
	}
	k := &Keepers{root: root, build: build, unwritten: map[string]bool{}, argv: append(argv[:len(argv):len(argv)], dir, build)}
	if k.killed, err = readKilled(root); err == nil {
		err = k.clearDead()
	}
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("open keepers: %w", err)
	}
	return k, nil
}

// clearDead removes the files of killed keepers, and records their deaths.
func (k *Keepers) clearDead() error {
	all, err := builds(k.root)
	for _, b := range all {
		p := keeperPaths{k.root, b}
		if lock, _ := p.lock(); lock != nil { // a locked one may be in use
			err = errors.Join(err, k.recordLifetime(lock))
			p.clear()
			lock.Close()
		}
	}
	return err
}

// Run runs the process in the keeper, as the function Run does here. When ctx ends with
// ErrDetach, Run returns and the process continues; any other end of ctx ends the process.
// If the keeper is killed, Run ends the rest of the run, and its Exit has the cause Lost;
// if that can't be determined now, the error is an *UnreadError.
//
// Started is called when the run has lasted for a while or has ended; not at all if the
// keeper is killed before it reports the start.
//
// A run that ends before that without output or errors has no meta.json and no exit.json,
// unless it is to be Recorded. The keeper keeps its end in memory until Forget, and writes
// both files if the client disconnects before that.
func (k *Keepers) Run(ctx context.Context, s Spec, started func(Process)) (task.Exit, error) {
	s, err := s.resolve()
	const attempts = 3 // a keeper may exit or be killed before it reads the request
	for range attempts {
		var l *connection
		if err == nil {
			l, err = k.connect(ctx)
		}
		if errors.Is(context.Cause(ctx), ErrDetach) {
			k.release(l)
			return task.Exit{}, ErrDetach
		}
		if err != nil {
			return task.Exit{}, spawnError(s, err)
		}
		order := encodeStart(s, k.takeKnown())
		exit, err := l.follow(ctx, request{Start: len(order), spec: order}, started)
		k.noteUnwritten(l, s.Dir)
		k.release(l)
		if !errors.Is(err, ErrKeeperGone) {
			return exit, err
		}
		if _, err := os.Lstat(inDir(s.Dir, StdoutFile)); !errors.Is(err, fs.ErrNotExist) {
			exit, _, err := k.await(ctx, s.Dir, s.Grace)
			return exit, err
		}
		k.closeIdle()        // the others are connected to the same dead keeper
		_ = k.recordKilled() // on an error, a later check of a caller reports it
	}
	if !Void(s.Dir) { // a keeper has started it
		exit, _, err := k.await(ctx, s.Dir, s.Grace)
		return exit, err
	}
	return task.Exit{}, spawnError(s, ErrKeeperGone)
}

func spawnError(s Spec, err error) *SpawnError {
	if setup, ok := errors.AsType[*SpawnError](err); ok {
		return setup
	}
	name := "nothing"
	if len(s.Argv) > 0 {
		name = s.Argv[0]
	}
	return &SpawnError{Command: name, Err: err}
}

// resolve returns a Spec with the same meaning in every process.
func (s Spec) resolve() (Spec, error) {
	if len(s.Argv) == 0 {
		return s, errors.New("the command is empty")
	}
	texts := slices.Concat(s.Argv, s.Env, s.Sandbox.Options, s.Sandbox.Network, s.Setup.Argv, s.Setup.Options, s.Setup.Network)
	if slices.ContainsFunc(texts, hasNUL) {
		return s, syscall.EINVAL // as execve
	}
	var err error
	if s.path, err = command(s.Argv[0]); err != nil {
		return s, err
	}
	if s.Setup.given() {
		if s.Setup.path, err = command(s.Setup.Argv[0]); err != nil {
			return s, &SpawnError{Command: s.Setup.Argv[0], Err: err, Setup: true}
		}
	}
	for _, path := range []*string{&s.Cwd, &s.Stdin, &s.Progress, &s.Answer} {
		if *path != "" && err == nil {
			*path, err = filepath.Abs(*path)
		}
	}
	return s, err
}

func hasNUL(text string) bool { return strings.IndexByte(text, 0) >= 0 }

// Await returns how the run in dir ended that an earlier process started. While a keeper of
// any build has the run, Await blocks, and the end of ctx means the same as for Run.
// Otherwise it ends the rest of the run. It returns false if the end is unknown; the Exit
// then has the cause Lost. After an *UnreadError, nothing is known, and a keeper may still
// have the run.
func (k *Keepers) Await(ctx context.Context, dir string) (task.Exit, bool, error) {
	return k.await(ctx, dir, sweepGrace)
}

func (k *Keepers) await(ctx context.Context, dir string, grace time.Duration) (task.Exit, bool, error) {
	all, err := builds(k.root)
	if err != nil {
		return task.Exit{}, false, &UnreadError{fmt.Errorf("await run: %w", err)}
	}
	for _, build := range all {
		exit, err := keeperPaths{k.root, build}.await(ctx, dir)
		if errors.Is(err, ErrKeeperGone) {
			_ = k.recordKilled() // on an error, a later check of a caller reports it
		}
		switch {
		case errors.Is(err, ErrDetach):
			return task.Exit{}, false, ErrDetach
		case err == nil || exit.PID != 0:
			return exit, true, nil
		case unreached(err):
			return task.Exit{}, false, &UnreadError{fmt.Errorf("reach keeper: %w", err)}
		}
	}
	return Await(dir, grace)
}

// connect returns a connection to this build's keeper, and starts it if necessary.
func (k *Keepers) connect(ctx context.Context) (*connection, error) {
	k.mu.Lock()
	if n := len(k.idle); n > 0 {
		defer k.mu.Unlock()
		l := k.idle[n-1]
		k.idle = k.idle[:n-1]
		return l, nil
	}
	k.mu.Unlock()
	k.starting.Lock()
	defer k.starting.Unlock()
	const timeout = 15 * time.Second // a stopping keeper waits for its runs' grace period
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	for {
		l, err := keeperPaths{k.root, k.build}.dial(ctx)
		if err == nil {
			return l, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("reach keeper: %w", errors.Join(context.Cause(ctx), err))
		}
		if err := k.start(); err != nil {
			return nil, fmt.Errorf("start keeper: %w", err)
		}
		pause(ctx, 2*time.Millisecond)
	}
}

// start starts this build's keeper, unless there is one. The socket accepts clients at
// once; the keeper inherits it and the lock.
func (k *Keepers) start() error {
	p := keeperPaths{k.root, k.build}
	lock, err := p.lock()
	if lock == nil {
		return err
	}
	defer lock.Close()
	k.reapKeeper() // its lock is free, so it is dead or dying
	if err := errors.Join(k.recordLifetime(lock), writeStart(lock)); err != nil {
		return err
	}
	socket, err := p.listen()
	if err != nil {
		return err
	}
	defer socket.Close()
	log, err := p.log()
	if err != nil {
		return err
	}
	defer log.Close()
	null, err := openStdin("")
	if err != nil {
		return err
	}
	defer unix.Close(null)
	return withSlack(keeperSlack, func() error {
		k.child, err = startProcess("/proc/self/exe", k.argv, &syscall.ProcAttr{
			Dir: "/", Env: os.Environ(),
			Files: []uintptr{uintptr(null), log.Fd(), log.Fd(), socket.Fd(), lock.Fd()},
			Sys:   &syscall.SysProcAttr{Setsid: true},
		})
		return err
	})
}

// reapKeeper waits for the end of the keeper that was started last.
func (k *Keepers) reapKeeper() {
	if k.child > 0 {
		_, _ = (*processTable)(nil).wait(k.child) // it may be reaped already
		k.child = 0
	}
}

// release keeps a connection for the next run, if it is usable.
func (k *Keepers) release(l *connection) {
	if l == nil {
		return
	}
	if l.unusable {
		l.conn.Close()
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.idle = append(k.idle, l)
}

func (k *Keepers) closeIdle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.idle {
		l.conn.Close()
	}
	k.idle = nil
}

// Close disconnects from the keepers. This build's keeper exits before Close returns, if it
// has no runs.
func (k *Keepers) Close() error {
	leaving := false
	if len(k.idle) > 0 {
		_, err := k.idle[0].follow(context.Background(), request{Leave: true}, nil)
		leaving = errors.Is(err, ErrKeeperGone)
	}
	k.closeIdle()
	if leaving {
		k.reapKeeper()
	}
	return k.root.Close()
}
