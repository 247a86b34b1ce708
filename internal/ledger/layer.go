package ledger

import (
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A layer is what some groups have changed and the tables do not have yet: of
// each task and run what it is now, however often it was changed, so that one
// which begins and ends within a layer is written once.
type memtable struct {
	tasks  map[int64]*taskChange
	order  []int64 // of the tasks, as they came
	latest map[envelope.ID]int64
	runs   map[task.RunName]*runChange
	ran    []task.RunName // in the order of the runs
	events []task.Event   // each with its Of, or of no task
	files  map[string]File
	dead   [][]byte // lines for rejected/
	bytes  int      // of what it keeps, about
}

// A taskChange is a task as it is now.
type taskChange struct {
	task.Task
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

func newLayer() *memtable {
	return &memtable{
		tasks: map[int64]*taskChange{}, latest: map[envelope.ID]int64{},
		runs: map[task.RunName]*runChange{}, files: map[string]File{},
	}
}

func (c *memtable) empty() bool {
	return len(c.tasks) == 0 && len(c.runs) == 0 && len(c.events) == 0 && len(c.files) == 0 && len(c.dead) == 0
}

// What a task, a run, an event and a dead letter take beside their bodies, about.
const (
	taskSize       = 600
	runSize        = 500
	eventSize      = 150
	deadLetterSize = 50
)

// setTask has the layer keep a task as it is now. It is the layer's from then on.
func (c *memtable) setTask(t *taskChange) {
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
func (c *memtable) setRun(r *runChange) {
	name := task.RunName{Task: r.Task, Attempt: r.Attempt}
	if was := c.runs[name]; was == nil {
		c.ran = append(c.ran, name)
		c.bytes += runSize
	} else {
		r.added = r.added || was.added
	}
	c.runs[name] = r
}

func (c *memtable) log(e task.Event) {
	c.events = append(c.events, e)
	c.bytes += eventSize + len(e.Data)
}

func (c *memtable) addDeadLetter(line []byte) {
	c.dead = append(c.dead, line)
	c.bytes += deadLetterSize + len(line)
}

// merge adds a layer that came after this one, and is not used any more.
func (c *memtable) merge(next *memtable) {
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
	for _, line := range next.dead {
		c.addDeadLetter(line)
	}
}

// each yields the rows that bring what the layer has to the tables, made in the room
// of v, which is empty.
func (c *memtable) each(v []value, yield func(change) error) error {
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
		if err := yield(rowOf(e, v)); err != nil {
			return err
		}
	}
	for _, f := range c.files {
		if err := yield(f.row(v)); err != nil {
			return err
		}
	}
	for _, line := range c.dead {
		if err := yield(change{newDeadLetters, append(v, blob(line))}); err != nil {
			return err
		}
	}
	return nil
}

func (t *taskChange) each(v []value, yield func(change) error) error {
	if err := yield(t.row(v)); err != nil {
		return err
	}
	if t.added {
		if err := yield(change{newRequests, append(v, integer(t.Seq), blob(t.raw))}); err != nil {
			return err
		}
	}
	if t.result != nil {
		return yield(change{newResults, append(v, integer(t.Seq), blob(t.result))})
	}
	return nil
}

func (t *taskChange) row(v []value) change {
	if t.added {
		plain := change{newTasks, append(v,
			integer(t.Seq), text(t.ID), integer(int64(t.Revision)), truth(t.Latest), text(t.Hash), text(t.Dialect), text(t.State),
			integer(int64(t.Attempt)), text(joinReasons(t.Reasons)), moment(t.Until), text(t.Agent), text(t.Requester), text(t.Type),
			moment(t.Deadline), moment(t.Received), moment(t.Finished), text(t.File), integer(t.Offset), text(t.Status), text(t.Kind),
			text(t.ResultSum), truth(t.Put), truth(t.Delivered), truth(t.Replaces), integer(t.Parent), integer(int64(t.Depth)))}
		if t.Priority == 0 {
			return plain
		}
		return change{newPriorities, append(plain.values, integer(int64(t.Priority)))}
	}
	return change{changedTasks, append(v,
		text(t.State), integer(int64(t.Attempt)), text(joinReasons(t.Reasons)), moment(t.Until), text(t.Agent), text(t.Status), text(t.Kind),
		moment(t.Finished), text(t.ResultSum), truth(t.Put), truth(t.Delivered), truth(t.Replaces), integer(t.Seq))}
}

func (r *runChange) row(v []value) change {
	if r.added {
		return change{newRuns, append(v,
			integer(r.Task), integer(int64(r.Attempt)), text(r.ID), integer(r.Intent.UnixMicro()), integer(int64(r.PID)), integer(int64(r.PIDStart)),
			text(r.Boot), moment(r.Started), moment(r.Finished), integer(int64(r.ExitCode)), text(r.Signal), text(r.Cause),
			amount(r.Tokens), amount(r.USDCents), text(r.terms), amount(r.Reserved.Tokens), amount(r.Reserved.USDCents),
			integer(r.Lender.Task), integer(int64(r.Lender.Attempt)), truth(r.Settled))}
	}
	return change{changedRuns, append(v,
		integer(int64(r.PID)), integer(int64(r.PIDStart)), text(r.Boot), moment(r.Started), moment(r.Finished), integer(int64(r.ExitCode)),
		text(r.Signal), text(r.Cause), truth(r.Settled), integer(r.Task), integer(int64(r.Attempt)))}
}

func rowOf(e task.Event, v []value) change {
	of := value{} // no task
	if e.Of != 0 {
		of = integer(e.Of)
	}
	return change{newEvents, append(v, integer(e.Time.UnixMicro()), text(e.Kind), value{kind: textValue, bytes: e.Data}, of)}
}

// row is that of a file, of which SQLite has the large numbers as signed ones.
func (f File) row(v []value) change {
	return change{readFiles, append(v,
		text(f.Path), integer(int64(f.Dev)), integer(int64(f.Inode)), integer(f.Offset), integer(f.Replay), blob(f.Head), blob(f.Tail))}
}

// exact is a time as the tables keep it.
func exact(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMicro(t.UnixMicro()).UTC()
}
