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

	"mailboxd/internal/task"
)

// A kept run is one that a keeper hosts.
type kept struct {
	stop  context.CancelCauseFunc
	begun chan struct{} // closed when self is set
	self  Process
	over  chan struct{} // closed when exit and err are set
	exit  task.Exit
	err   error

	book   *record // of its directory
	client *line   // who was told of its end, and is to remember it
}

// tellAfter is how long a run lasts before its client hears of its process, and
// meta.json is made. Of one that is over by then the client hears all at once.
const tellAfter = 50 * time.Millisecond

// begin starts a run for a client. It returns nil for one that it refuses.
func (k *keeper) begin(ctx context.Context, l *line, s Spec) *kept {
	ctx, stop := context.WithCancelCause(ctx)
	r := &kept{stop: stop, begun: make(chan struct{}), over: make(chan struct{})}
	known := false
	k.change(func() {
		if _, known = k.runs[s.Dir]; !known {
			k.runs[s.Dir] = r
		}
	})
	if known {
		stop(nil)
		_ = l.send(report{Refused: refuse(&SpawnError{Command: s.Dir, Err: unix.EEXIST})})
		return nil
	}
	k.hosts.take(func() {
		defer stop(nil)
		k.host(ctx, l, s, r)
	})
	return r
}

// host is the whole of a run. Who is told of its end finds the keeper without
// it, unless its end is still to be written.
func (k *keeper) host(ctx context.Context, l *line, s Spec, r *kept) {
	var early sync.Once
	var late *time.Timer
	e, err := run(ctx, k.family, s, func(m Meta) {
		r.self, r.book = m.Process, newRecord(s.Dir, m)
		close(r.begun)
		late = time.AfterFunc(tellAfter, func() {
			early.Do(func() {
				r.book.make()
				_ = l.send(report{Started: r.process()})
			})
		})
	})
	if late != nil {
		late.Stop()
	}
	quick := false
	early.Do(func() { quick = true })
	r.exit, r.err = e.exit, err
	unwritten := quick && e.silent && !s.Recorded && k.entrust(l, r)
	if err == nil && !unwritten {
		r.err = r.book.end(r.exit)
	}
	close(r.over)
	end := r.end()
	if end.Unwritten = unwritten; quick {
		end.Started = r.process()
	}
	_, refused := errors.AsType[*SpawnError](r.err)
	if done := r.err == nil || refused; done && !unwritten {
		k.forget(s.Dir)
	}
	_ = l.send(end)
	if r.err != nil && !refused {
		r.record(ctx)
		k.forget(s.Dir)
	}
}

// record sees to it that exit.json is there, for a client that may come later.
// A disk may be full, and have room again; a directory that is gone stays so.
func (r *kept) record(ctx context.Context) {
	dir := r.book.dir
	for ctx.Err() == nil {
		if _, ok, _ := ReadExit(dir); ok {
			return
		}
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return
		}
		pause(ctx, time.Second)
		_ = os.Remove(inDir(dir, ExitFile+".tmp")) // what did not fit
		_ = putExit(dir, r.exit)                   // or once more
	}
}

// serve does what one client demands, until the client is gone. That ends no
// run: whoever wants to know comes again.
func (k *keeper) serve(ctx context.Context, l *line) {
	var telling sync.WaitGroup
	defer telling.Wait()
	if l.send(hello{Protocol: protocol, Build: k.build, PID: os.Getpid()}) != nil {
		return
	}
	var current *kept
	for first := true; ; first = false {
		d, err := l.listen()
		if err != nil || first && !k.obeys(l) {
			return
		}
		switch {
		case d.Start > 0:
			s, known := readOrder(d.order)
			k.remembered(known)
			current = k.begin(ctx, l, s)
			continue
		case d.Stop != nil && current != nil:
			current.stop(errors.New(*d.Stop))
			continue
		case d.Leave && k.unneeded():
			return
		}
		if current = k.find(string(d.Await)); current == nil {
			_ = l.send(report{Unknown: true}) // that the client is gone is told by listen
			continue
		}
		r := current
		telling.Go(func() { r.tell(l) })
	}
}

func (k *keeper) find(dir string) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return cmp.Or(k.runs[dir], k.told[dir])
}

// unneeded makes the keeper leave, and reports true, if nothing runs.
func (k *keeper) unneeded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.runs) > 0 {
		return false
	}
	k.leave()
	return true
}

// tell follows the run for a client that did not start it, who may be gone
// before it ends.
func (r *kept) tell(l *line) {
	select {
	case <-r.begun:
	case <-r.over: // then it has begun before, or never did
	}
	if p := r.process(); p != nil {
		_ = l.send(report{Started: p})
	}
	<-r.over
	_ = l.send(r.end())
}

// process is that of the run; nil when it has not begun.
func (r *kept) process() *Process {
	select {
	case <-r.begun:
		return &r.self
	default:
		return nil
	}
}

// end tells how the run ended.
func (r *kept) end() report {
	end := report{Exit: &r.exit}
	if spawn, ok := errors.AsType[*SpawnError](r.err); ok {
		end = report{Refused: refuse(spawn)}
	} else if r.err != nil {
		end.Error = r.err.Error()
	}
	return end
}
