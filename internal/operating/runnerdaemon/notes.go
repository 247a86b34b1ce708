package runnerdaemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// Pauses of what a run says while it works.
const (
	noteTime  = 5 * time.Second        // for the answer to a note
	askEvery  = time.Second            // between two questions about the same call
	costEvery = 2 * time.Second        // between two reports of the cost
	lineEvery = 200 * time.Millisecond // between two looks at the output that is followed
)

// notes are what a run says and asks while it works. They are sent in order, each until it is answered.
type notes struct {
	d   *daemon
	one *run

	mu     sync.Mutex
	queue  []fleet.Note
	number int64
	stop   string // why the owner ends the run
	cost   time.Time
	asked  map[string]time.Time
	closed chan struct{}
	more   chan struct{}
	done   sync.WaitGroup
}

// notes gives a job the functions by which its run reaches the owner.
func (d *daemon) notes(one *run, job *task.Job) *notes {
	n := &notes{
		d: d, one: one, number: time.Now().UnixMilli(), asked: map[string]time.Time{}, closed: make(chan struct{}), more: make(chan struct{}, 1),
	}
	allowance := job.Allowance
	job.Meter = func(cost envelope.Cost) error { return n.meter(allowance, cost) }
	job.Report = func(m envelope.Message) { n.add(fleet.Note{Report: &m}) }
	job.Used = func(kind task.Kind, use task.ToolUse) error {
		n.add(fleet.Note{Used: &fleet.UsedNote{Kind: kind, Use: use}})
		return nil
	}
	if job.Terms.Calls != nil {
		job.Ask = n.ask
	}
	n.done.Go(n.send)
	return n
}

// meter ends a run at its allowance, whether the owner can be reached or not.
func (n *notes) meter(allowance envelope.Budget, cost envelope.Cost) error {
	n.d.mu.Lock()
	n.d.machine.Spent(n.one.token, cost)
	n.d.mu.Unlock()
	if why := core.Overspent(allowance, cost); why != "" {
		return errors.New(why)
	}
	n.mu.Lock()
	stop, due := n.stop, time.Since(n.cost) >= costEvery
	if due {
		n.cost = time.Now()
	}
	n.mu.Unlock()
	if stop != "" {
		return errors.New(stop)
	}
	if due && cost != (envelope.Cost{}) {
		n.add(fleet.Note{Cost: &cost})
	}
	return nil
}

// ask asks the owner about a call. There is no decision while the owner can't be reached.
func (n *notes) ask(call task.Call, made bool) (task.CallDecision, error) {
	note := fleet.Note{Ask: &fleet.AskNote{Call: call, Made: made}}
	if made {
		n.add(note)
		return task.CallDecision{}, nil
	}
	n.mu.Lock()
	last := n.asked[call.ID]
	if time.Since(last) < askEvery {
		n.mu.Unlock()
		return task.CallDecision{}, nil
	}
	n.asked[call.ID] = time.Now()
	note = n.numbered(note)
	n.mu.Unlock()
	reply, err := n.deliver(note)
	if err != nil || reply.Decision == nil {
		return task.CallDecision{}, nil
	}
	return *reply.Decision, nil
}

// numbered completes a note. The caller holds mu.
func (n *notes) numbered(note fleet.Note) fleet.Note {
	n.number++
	note.Runner, note.Incarnation, note.Token, note.Number = n.d.name, n.d.journal.incarnation, n.one.token, n.number
	return note
}

// mostNotes limits the notes that wait for the owner.
const mostNotes = 500

func (n *notes) add(note fleet.Note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	note = n.numbered(note)
	if _, err := fleet.Encode(note); err != nil {
		n.d.Log.Warn().Str("run", n.one.runID).Err(err).Msg("note of a run not sent")
		return
	}
	for len(n.queue) >= mostNotes && n.dropOldest() {
	}
	n.queue = append(n.queue, note)
	select {
	case n.more <- struct{}{}:
	default:
	}
}

// dropOldest drops the oldest note that isn't being sent and is about no call of a tool. It returns false if there is
// none. The caller holds mu.
func (n *notes) dropOldest() bool {
	for i, note := range n.queue {
		if i > 0 && note.Ask == nil {
			n.queue = slices.Delete(n.queue, i, i+1)
			return true
		}
	}
	return false
}

// deliver sends one note.
func (n *notes) deliver(note fleet.Note) (fleet.NoteReply, error) {
	if !n.d.isLinked() {
		return fleet.NoteReply{}, errors.New("not connected yet")
	}
	ctx, stop := n.d.spells.within(context.WithoutCancel(n.one.ctx), noteTime)
	defer stop()
	return n.d.link.Note(ctx, note)
}

// lastNotes is how long the notes of an ended run may wait for the owner.
const lastNotes = 10 * time.Second

// send sends the queue until the run has ended and it is empty, or the owner can't be reached then.
func (n *notes) send() {
	var over <-chan time.Time
	closed := n.closed
	for pause := firstPause; ; {
		n.mu.Lock()
		var next *fleet.Note
		if len(n.queue) > 0 {
			next = &n.queue[0]
		}
		n.mu.Unlock()
		if next == nil {
			if closed == nil {
				return
			}
			select {
			case <-n.more:
			case <-closed:
				closed, over = nil, time.After(lastNotes)
			}
			continue
		}
		back := n.d.spells.current()
		reply, err := n.deliver(*next)
		if err == nil {
			pause = firstPause
			n.answered(reply)
			continue
		}
		select {
		case <-over:
			return
		case <-closed:
			closed, over = nil, time.After(lastNotes)
		case <-back.Done():
			pause = firstPause
		case <-time.After(pause):
			pause = min(2*pause, mostPause)
		}
	}
}

// answered takes the answer to the first note, which close may have removed.
func (n *notes) answered(reply fleet.NoteReply) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue, n.stop = n.queue[min(1, len(n.queue)):], reply.Stop
}

// close waits until the notes of an ended run are sent. Those of a run that goes on are read again by the next
// program.
func (n *notes) close(detached bool) {
	if detached {
		n.mu.Lock()
		n.queue = nil
		n.mu.Unlock()
	}
	close(n.closed)
	n.done.Wait()
}

// sendLines sends the output of a run while someone follows it.
func (d *daemon) sendLines(one *run, dir string) (stop func()) {
	ended := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		timer := time.NewTicker(lineEvery)
		defer timer.Stop()
		known := false // by the owner: that the run has begun, and takes a while
		for offset, over := int64(0), false; !over; {
			select {
			case <-ended: // the last lines come before the outcome, since the complete output takes their place
				over = true
			case <-timer.C:
				if !known {
					d.wake()
				}
				known = true
			}
			d.mu.Lock()
			follows := bootNow() < one.follow
			d.mu.Unlock()
			if follows && d.isLinked() {
				offset = d.sendLine(one, filepath.Join(dir, runner.StdoutFile), offset)
			}
		}
	})
	return func() { close(ended); looking.Wait() }
}

// mostLine limits the output in one message.
const mostLine = 64 << 10

// sendLine sends what is new in the output from an offset, and returns the next one.
func (d *daemon) sendLine(one *run, path string, offset int64) int64 {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return offset
	}
	defer file.Close()
	text := make([]byte, mostLine)
	for {
		n, _ := file.ReadAt(text, offset)
		if n == 0 {
			return offset
		}
		if err := d.link.Log(one.token, fleet.LogLine{Offset: offset, Text: text[:n]}); err != nil {
			return offset
		}
		offset += int64(n)
	}
}
