package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A kept run is one that a keeper hosts.
type kept struct {
	stop  context.CancelCauseFunc
	begun chan struct{} // closed when self is set
	self  Process
	over  chan struct{} // closed when exit and err are set
	exit  Exit
	err   error
}

// begin starts a run, or says why not by an ended one.
func (k *keeper) begin(ctx context.Context, s Spec) *kept {
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
		r.err = &SpawnError{Command: s.Dir, Err: unix.EEXIST}
		close(r.over)
		return r
	}
	k.work.Go(func() {
		defer stop(nil)
		r.exit, r.err = run(ctx, k.family, s, func(p Process) { r.self = p; close(r.begun) })
		close(r.over)
		if _, refused := errors.AsType[*SpawnError](r.err); r.err != nil && !refused {
			r.record(ctx, s.Dir)
		}
		k.change(func() { delete(k.runs, s.Dir) })
	})
	return r
}

// record sees to it that exit.json is there, for a client that may come later.
// A disk may be full, and have room again; a directory that is gone stays so.
func (r *kept) record(ctx context.Context, dir string) {
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
	for {
		var d demand
		if l.in.Decode(&d) != nil {
			return
		}
		switch {
		case d.Start != nil:
			current = k.begin(ctx, d.Start.spec())
		case d.Await != "":
			current = k.find(string(d.Await))
		case d.Stop != nil && current != nil:
			current.stop(errors.New(*d.Stop))
			continue
		case d.Leave:
			if k.unneeded() {
				return
			}
			current = nil
		}
		if current == nil {
			_ = l.send(report{Unknown: true}) // that the client is gone is told by Decode
			continue
		}
		r := current
		telling.Go(func() { r.tell(l) })
	}
}

func (k *keeper) find(dir string) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.runs[dir]
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

// tell follows the run for a client, who may be gone before it ends.
func (r *kept) tell(l *line) {
	select {
	case <-r.begun:
	case <-r.over: // then it has begun before, or never did
	}
	select {
	case <-r.begun:
		_ = l.send(report{Started: &r.self})
	default:
	}
	<-r.over
	end := report{Exit: &r.exit}
	if spawn, ok := errors.AsType[*SpawnError](r.err); ok {
		end = report{Refused: refuse(spawn)}
	} else if r.err != nil {
		end.Error = r.err.Error()
	}
	_ = l.send(end)
}
