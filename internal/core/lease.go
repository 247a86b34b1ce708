package core

import (
	"time"

	"mailboxd/internal/task"
)

// Claim gives a waiting task to the program that answers it.
type Claim struct {
	Task  int64
	By    By
	Token string        // what that program has to show
	Lasts time.Duration // how long it has the task
	Ended bool          // the program that had claimed it has ended before its lease
}

func (c *Claim) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil || t.State != task.Waiting || t.ClaimedAt(d.now) && !c.Ended {
		return ErrStale
	}
	if !t.Until.IsZero() {
		var data map[string]any
		if t.ClaimedAt(d.now) {
			data = map[string]any{"reason": "the program that claimed it has ended"}
		}
		d.show(t, task.KindLeaseExpired, data)
	}
	until := d.now.Add(c.Lasts)
	d.add(t, moved(t, task.Change{To: task.Waiting, Until: until}), "", nil)
	d.add(t, &Leased{Token: c.Token}, task.KindTaskClaimed, with(c.By.Data(), "until", stamp(until)))
	return nil
}

// Renew has a lease last as long as a new one would.
type Renew struct {
	Task    int64
	Attempt int
	Token   string
	Lasts   time.Duration
}

func (c *Renew) decide(d *decision) error {
	t := d.state.tasks[c.Task]
	if t == nil {
		return ErrStale
	}
	if err := Entitled(t, c.Attempt, c.Token, d.now); err != nil {
		return err
	}
	if !t.ClaimedAt(d.now) {
		return ErrLeaseOver
	}
	d.add(t, moved(t, task.Change{To: task.Waiting, Until: d.now.Add(c.Lasts)}), "", nil)
	return nil
}

// Entitled says why a token doesn't let a program answer a task; nil when it does. A
// task that nobody has claimed can be answered without a token, or with the one by
// which it was claimed last: work under a lease that lapsed isn't lost unless another
// program has claimed the task. Any other token is of a request that was replaced.
func Entitled(t *Task, attempt int, token string, now time.Time) error {
	switch {
	case t.State != task.Waiting || t.Attempt != attempt:
		return StateErrorOf(t.Task)
	case t.ClaimedAt(now) && token != t.Token:
		return ErrLeased
	case token != "" && token != t.Token:
		return ErrLeaseOver
	}
	return nil
}

// Lapse ends a lease that nobody has renewed.
type Lapse struct {
	Task int64
	Seen Seen
}

func (c *Lapse) decide(d *decision) error {
	t, err := d.state.find(c.Task, c.Seen)
	if err != nil || t.State != task.Waiting || t.Until.IsZero() || t.ClaimedAt(d.now) {
		return ErrStale
	}
	d.add(t, moved(t, task.Change{To: task.Waiting}), task.KindLeaseExpired, nil)
	return nil
}
