package runner

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
)

// A hostedRun is a run in a keeper.
type hostedRun struct {
	stop  context.CancelCauseFunc
	begun chan struct{} // closed when self is set
	self  Process
	over  chan struct{} // closed when exit and err are set
	exit  task.Exit
	err   error

	mu     sync.Mutex  // guards the record during the run
	file   *record     // the record in its directory
	client *connection // the client that has to store its end
}

// reportAfter is how long a run lasts before its client gets its process, and meta.json is
// made. For a shorter run, the client gets a single response.
const reportAfter = 50 * time.Millisecond

// begin starts a run for a client. It returns nil if it refuses the run.
func (k *keeper) begin(ctx context.Context, l *connection, s Spec) *hostedRun {
	ctx, stop := context.WithCancelCause(ctx)
	r := &hostedRun{stop: stop, begun: make(chan struct{}), over: make(chan struct{})}
	known := false
	k.update(func() {
		if _, known = k.runs[s.Dir]; !known {
			k.runs[s.Dir] = r
		}
	})
	if known {
		stop(nil)
		_ = l.send(response{Refused: refuse(&SpawnError{Command: s.Dir, Err: unix.EEXIST})})
		return nil
	}
	k.hosts.run(func() {
		defer stop(nil)
		k.host(ctx, l, s, r)
	})
	return r
}

// host hosts a run from start to end. When the client gets the end, the keeper has removed
// the run, unless its end must still be written.
func (k *keeper) host(ctx context.Context, l *connection, s Spec, r *hostedRun) {
	var once sync.Once
	var timer *time.Timer
	e, err := run(ctx, k.table, s, func(m Meta) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.file != nil {
			r.file.replace(m)
			return
		}
		r.self, r.file = m.Process, newRecord(s.Dir, m)
		close(r.begun)
		timer = time.AfterFunc(reportAfter, func() {
			once.Do(func() {
				r.create()
				_ = l.send(response{Started: r.process()})
			})
		})
	})
	if timer != nil {
		timer.Stop()
	}
	quick := false
	once.Do(func() { quick = true })
	r.exit, r.err = e.exit, err
	unwritten := quick && e.silent && !s.Recorded && k.deferRecord(l, r)
	if err == nil && !unwritten {
		r.err = r.file.finish(r.exit)
	}
	close(r.over)
	end := r.end()
	if end.Unwritten = unwritten; quick {
		end.Started = r.process()
	}
	_, refused := errors.AsType[*SpawnError](r.err)
	if done := r.err == nil || refused; done && !unwritten {
		k.removeRun(s.Dir)
	}
	_ = l.send(end)
	if r.err != nil && !refused {
		r.retryRecord(ctx)
		k.removeRun(s.Dir)
	}
}

// create makes the record of a run that lasts.
func (r *hostedRun) create() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.file.create()
}

// retryRecord writes exit.json for a client that may come later. It retries on a full disk,
// and stops if the directory is gone.
func (r *hostedRun) retryRecord(ctx context.Context) {
	dir := r.file.dir
	for ctx.Err() == nil {
		if _, ok, _ := ReadExit(dir); ok {
			return
		}
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return
		}
		pause(ctx, time.Second)
		_ = os.Remove(inDir(dir, ExitFile+".tmp")) // a partial one
		_ = putExit(dir, r.exit)                   // retried after an error
	}
}

// serve answers the requests of a client until it disconnects. That ends no run: the client
// can connect again.
func (k *keeper) serve(ctx context.Context, l *connection) {
	var followers sync.WaitGroup
	defer followers.Wait()
	if l.send(hello{Protocol: protocol, Build: k.build, PID: os.Getpid()}) != nil {
		return
	}
	var current *hostedRun
	for first := true; ; first = false {
		d, err := l.listen()
		if err != nil || first && !k.authorize(l) {
			return
		}
		switch {
		case d.Start > 0:
			s, known := decodeStart(d.spec)
			k.stored(known)
			current = k.begin(ctx, l, s)
			continue
		case d.Stop != nil && current != nil:
			current.stop(errors.New(*d.Stop))
			continue
		case d.Leave && k.unneeded():
			return
		}
		if current = k.find(string(d.Await)); current == nil {
			_ = l.send(response{Unknown: true}) // noticeAnswer notices a client that is gone
			continue
		}
		r := current
		followers.Go(func() { r.follow(l) })
	}
}

func (k *keeper) find(dir string) *hostedRun {
	k.mu.Lock()
	defer k.mu.Unlock()
	return cmp.Or(k.runs[dir], k.unwritten[dir])
}

// unneeded makes the keeper exit and returns true, if nothing runs.
func (k *keeper) unneeded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.runs) > 0 {
		return false
	}
	k.leave()
	return true
}

// follow reports a run to a client that didn't start it.
func (r *hostedRun) follow(l *connection) {
	select {
	case <-r.begun:
	case <-r.over: // it has begun before, or never
	}
	if p := r.process(); p != nil {
		_ = l.send(response{Started: p})
	}
	<-r.over
	_ = l.send(r.end())
}

// process returns the process of the run; nil if it hasn't begun.
func (r *hostedRun) process() *Process {
	select {
	case <-r.begun:
		return &r.self
	default:
		return nil
	}
}

// end returns the response for the end of the run.
func (r *hostedRun) end() response {
	end := response{Exit: &r.exit}
	if spawn, ok := errors.AsType[*SpawnError](r.err); ok {
		end = response{Refused: refuse(spawn)}
	} else if r.err != nil {
		end.Error = r.err.Error()
	}
	return end
}
