package ledger

import (
	"database/sql/driver"
	"time"

	"mailboxd/envelope"
)

// A layer is what some groups have changed and the tables do not have yet: of
// each task and run what it is now, however often it was changed, so that one
// which begins and ends within a layer is written once.
type layer struct {
	tasks  map[int64]*taskChange
	order  []int64 // of the tasks, as they came
	latest map[envelope.ID]int64
	runs   map[RunName]*runChange
	ran    []RunName // in the order of the runs
	events []Event   // each with its Of, or of no task
	files  map[string]File
	bytes  int // of what it keeps, about
}

// A taskChange is a task as it is now.
type taskChange struct {
	Task
	added  bool   // this layer brings it
	raised bool   // its group has begun another attempt
	raw    []byte // with added: the line
	result []byte // the bytes of a new result; nil: none
}

// A runChange is a run as it is now.
type runChange struct {
	record
	added bool // this layer brings it
}

func newLayer() *layer {
	return &layer{
		tasks: map[int64]*taskChange{}, latest: map[envelope.ID]int64{},
		runs: map[RunName]*runChange{}, files: map[string]File{},
	}
}

func (c *layer) empty() bool {
	return len(c.tasks) == 0 && len(c.runs) == 0 && len(c.events) == 0 && len(c.files) == 0
}

// What a task, a run and an event take beside their bodies, about.
const (
	taskSize  = 600
	runSize   = 500
	eventSize = 150
)

// setTask has the layer keep a task as it is now. It is the layer's from then on.
func (c *layer) setTask(t *taskChange) {
	was := c.tasks[t.Seq]
	if was == nil {
		c.order = append(c.order, t.Seq)
		c.bytes += taskSize
	} else {
		t.added = t.added || was.added
		if t.raw == nil {
			t.raw = was.raw
		}
		if t.result == nil {
			t.result = was.result
		}
		c.bytes -= len(was.raw) + len(was.result)
	}
	c.bytes += len(t.raw) + len(t.result)
	c.tasks[t.Seq] = t
	if t.Latest {
		c.latest[t.ID] = t.Seq
	}
}

// setRun has the layer keep a run as it is now. It is the layer's from then on.
func (c *layer) setRun(r *runChange) {
	name := RunName{r.Task, r.Attempt}
	if was := c.runs[name]; was == nil {
		c.ran = append(c.ran, name)
		c.bytes += runSize
	} else {
		r.added = r.added || was.added
	}
	c.runs[name] = r
}

func (c *layer) log(e Event) {
	c.events = append(c.events, e)
	c.bytes += eventSize + len(e.Data)
}

// merge adds a layer that came after this one, and is not used any more.
func (c *layer) merge(next *layer) {
	for _, seq := range next.order {
		c.setTask(next.tasks[seq])
	}
	for _, name := range next.ran {
		c.setRun(next.runs[name])
	}
	for _, e := range next.events {
		c.log(e)
	}
	for path, f := range next.files {
		c.files[path] = f
	}
}

// each yields the rows that bring what the layer has to the tables.
func (c *layer) each(yield func(change) error) error {
	v := make([]driver.Value, 0, 32) // for the values of each
	for _, seq := range c.order {
		if err := c.tasks[seq].each(v, yield); err != nil {
			return err
		}
	}
	for _, name := range c.ran {
		if err := yield(c.runs[name].row(v)); err != nil {
			return err
		}
	}
	for _, e := range c.events {
		var of driver.Value // NULL for none
		if e.Of != 0 {
			of = e.Of
		}
		if err := yield(change{newEvents, append(v, e.Time.UnixMicro(), e.Kind, string(e.Data), of)}); err != nil {
			return err
		}
	}
	for _, f := range c.files {
		err := yield(change{readFiles, append(v, f.Path, int64(f.Dev), int64(f.Inode), f.Offset, f.Replay, f.Head, f.Tail)}) // SQLite's integers are signed
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *taskChange) each(v []driver.Value, yield func(change) error) error {
	if err := yield(t.row(v)); err != nil {
		return err
	}
	if t.added {
		if err := yield(change{newRequests, append(v, t.Seq, t.raw)}); err != nil {
			return err
		}
	}
	if t.result != nil {
		return yield(change{newResults, append(v, t.Seq, t.result)})
	}
	return nil
}

func (t *taskChange) row(v []driver.Value) change {
	if t.added {
		return change{newTasks, append(v,
			t.Seq, string(t.ID), int64(t.Revision), t.Latest, t.Hash, string(t.Dialect), string(t.State), int64(t.Attempt), joinReasons(t.Reasons),
			micros(t.Until), t.Agent, t.Requester, t.Type, micros(t.Deadline), micros(t.Received), micros(t.Finished), t.File, t.Offset,
			string(t.Status), string(t.Kind), t.ResultSum, t.Put, t.Delivered, t.Replaces, t.Parent, int64(t.Depth))}
	}
	return change{changedTasks, append(v,
		string(t.State), int64(t.Attempt), joinReasons(t.Reasons), micros(t.Until), t.Agent, string(t.Status), string(t.Kind),
		micros(t.Finished), t.ResultSum, t.Put, t.Delivered, t.Replaces, t.Seq)}
}

func (r *runChange) row(v []driver.Value) change {
	if r.added {
		return change{newRuns, append(v,
			r.Task, int64(r.Attempt), r.ID, r.Intent.UnixMicro(), int64(r.PID), int64(r.PIDStart), r.Boot, micros(r.Started), micros(r.Finished),
			int64(r.ExitCode), r.Signal, r.Cause, number(r.Tokens), number(r.USDCents), r.terms,
			number(r.Reserved.Tokens), number(r.Reserved.USDCents), r.Lender.Task, int64(r.Lender.Attempt), r.Settled)}
	}
	return change{changedRuns, append(v,
		int64(r.PID), int64(r.PIDStart), r.Boot, micros(r.Started), micros(r.Finished), int64(r.ExitCode), r.Signal, r.Cause, r.Settled,
		r.Task, int64(r.Attempt))}
}

// exact is a time as the tables keep it.
func exact(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}
