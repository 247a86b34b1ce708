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

	"mailboxd/internal/task"
)

// Keepers runs processes in a keeper: another process of our own program, which
// goes on when we end. There is one for each build of the program that has runs;
// ours is started when it is first needed. Only OpenKeepers makes one; its
// methods may be called concurrently, but Close only once they have returned.
type Keepers struct {
	root  *os.Root
	build string
	argv  []string

	starting sync.Mutex // one start at a time: guards child
	child    int        // ours to bury, 0 for none

	mu        sync.Mutex      // guards what follows
	idle      []*line         // connected to our keeper
	unwritten map[string]bool // the runs whose end we are to remember, by directory
	known     []string        // those of them whose end is remembered, which the keeper is not told yet
	killed    []lifetime      // of the keepers that were killed since the machine was started
}

// sweepGrace is the grace for what is left of a run whose own is not known.
const sweepGrace = 5 * time.Second

// OpenKeepers opens the directory of the keepers, and makes it with mode 0700
// when it is missing. The build names this program among others that share the
// directory; argv, followed by the directory and the build, is how to start a
// process of it that does nothing but call Keep.
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

// clearDead clears the files of keepers that were killed, and notes their deaths.
func (k *Keepers) clearDead() error {
	all, err := builds(k.root)
	for _, b := range all {
		p := place{k.root, b}
		if lock, _ := p.lock(); lock != nil { // what cannot be locked may be in use
			err = errors.Join(err, k.note(lock))
			p.clear()
			lock.Close()
		}
	}
	return err
}

// Run runs the process in our keeper, as the function Run would here. When ctx
// ends with ErrDetach, so does Run, and the process goes on; any other end of
// ctx ends the process. When the keeper is killed, what is left of the run is
// ended, and its Exit has the cause Lost; when that cannot be found out for now,
// the error is an *UnreadError.
//
// Started is called when the run has lasted for a while or is over, and not at
// all when the keeper is killed before it tells of it.
//
// Of a run that was over by then and has nothing else to tell, unless it is to be
// Recorded, there is neither meta.json nor exit.json: the keeper remembers its end
// until Forget, and writes them when we are gone before that.
func (k *Keepers) Run(ctx context.Context, s Spec, started func(Process)) (task.Exit, error) {
	s, err := s.settle()
	const attempts = 3 // a keeper may be leaving, or be killed, before it has read what we want
	for range attempts {
		var l *line
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
		order := newOrder(s, k.news())
		exit, err := l.follow(ctx, demand{Start: len(order), order: order}, started)
		k.remember(l, s.Dir)
		k.release(l)
		if !errors.Is(err, ErrKeeperGone) {
			return exit, err
		}
		if _, err := os.Lstat(inDir(s.Dir, StdoutFile)); !errors.Is(err, fs.ErrNotExist) {
			exit, _, err := k.await(ctx, s.Dir, s.Grace)
			return exit, err
		}
		k.hangUp()         // the others lead nowhere either
		_ = k.noteKilled() // or whoever asks who may decide finds out
	}
	if !Void(s.Dir) { // one of them began it after all
		exit, _, err := k.await(ctx, s.Dir, s.Grace)
		return exit, err
	}
	return task.Exit{}, spawnError(s, ErrKeeperGone)
}

func spawnError(s Spec, err error) *SpawnError {
	name := "nothing"
	if len(s.Argv) > 0 {
		name = s.Argv[0]
	}
	return &SpawnError{Command: name, Err: err}
}

// settle makes a Spec that means the same in every process.
func (s Spec) settle() (Spec, error) {
	if len(s.Argv) == 0 {
		return s, errors.New("the command is empty")
	}
	if slices.ContainsFunc(s.Argv, hasNUL) || slices.ContainsFunc(s.Env, hasNUL) {
		return s, syscall.EINVAL // as execve has it
	}
	var err error
	if s.path, err = command(s.Argv[0]); err != nil {
		return s, err
	}
	for _, path := range []*string{&s.Cwd, &s.Stdin, &s.Progress, &s.Answer} {
		if *path != "" && err == nil {
			*path, err = filepath.Abs(*path)
		}
	}
	return s, err
}

func hasNUL(text string) bool { return strings.IndexByte(text, 0) >= 0 }

// Await returns how the run in dir ended that somebody before us started. While
// a keeper of any build has it, Await blocks, and the end of ctx means what it
// means to Run. Otherwise what is left of the run is ended. It reports false
// when nobody knows how it ended; its Exit then has the cause Lost. After an
// *UnreadError nothing is known, and a keeper may still have the run.
func (k *Keepers) Await(ctx context.Context, dir string) (task.Exit, bool, error) {
	return k.await(ctx, dir, sweepGrace)
}

func (k *Keepers) await(ctx context.Context, dir string, grace time.Duration) (task.Exit, bool, error) {
	all, err := builds(k.root)
	if err != nil {
		return task.Exit{}, false, &UnreadError{fmt.Errorf("await run: %w", err)}
	}
	for _, build := range all {
		exit, err := place{k.root, build}.await(ctx, dir)
		if errors.Is(err, ErrKeeperGone) {
			_ = k.noteKilled() // or whoever asks who may decide finds out
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

// connect returns a connection to our keeper, which it starts if there is none.
func (k *Keepers) connect(ctx context.Context) (*line, error) {
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
	const patience = 15 * time.Second // one that was told to stop takes its runs' grace
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for {
		l, err := place{k.root, k.build}.dial(ctx)
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

// start starts our keeper, unless there is one. The socket takes clients at
// once; the keeper inherits it, and the lock.
func (k *Keepers) start() error {
	p := place{k.root, k.build}
	lock, err := p.lock()
	if lock == nil {
		return err
	}
	defer lock.Close()
	k.bury() // it has let go of the lock, so it is dead or dying
	if err := errors.Join(k.note(lock), writeStart(lock)); err != nil {
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

// bury waits for the end of the keeper that we started last.
func (k *Keepers) bury() {
	if k.child > 0 {
		_, _ = (*family)(nil).bury(k.child) // somebody may have waited for it
		k.child = 0
	}
}

// release keeps a connection for the next run, if it is as good as new.
func (k *Keepers) release(l *line) {
	if l == nil {
		return
	}
	if l.spoilt {
		l.conn.Close()
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.idle = append(k.idle, l)
}

func (k *Keepers) hangUp() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.idle {
		l.conn.Close()
	}
	k.idle = nil
}

// Close lets go of the keepers. Ours leaves before Close returns, if it has
// nothing to keep.
func (k *Keepers) Close() error {
	leaving := false
	if len(k.idle) > 0 {
		_, err := k.idle[0].follow(context.Background(), demand{Leave: true}, nil)
		leaving = errors.Is(err, ErrKeeperGone)
	}
	k.hangUp()
	if leaving {
		k.bury()
	}
	return k.root.Close()
}
