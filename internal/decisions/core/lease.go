package core

import (
	"time"

	"mailboxd/internal/decisions/task"
)

// Claim gives a waiting task to a program that will answer it.
type Claim struct {
	Task  int64
	By    By
	Token string        // the program shows it to answer or renew
	Lasts time.Duration // the length of the lease
	Ended bool          // the program with the current lease has ended
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
	d.add(t, &Leased{Token: c.Token}, task.KindTaskClaimed, with(c.By.Data(), "until", formatTime(until)))
	return nil
}

// Renew extends a lease to its full length from now.
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
	if err := CheckToken(t, c.Attempt, c.Token, d.now); err != nil {
		return err
	}
	if !t.ClaimedAt(d.now) {
		return ErrLeaseOver
	}
	d.add(t, moved(t, task.Change{To: task.Waiting, Until: d.now.Add(c.Lasts)}), "", nil)
	return nil
}

// CheckToken returns nil if a token allows a program to answer a task, and otherwise the
// reason. A task without a valid claim can be answered without a token, or with its last
// token: work under an expired lease isn't lost unless another program has claimed the
// task. Any other token belongs to a replaced request.
func CheckToken(t *Task, attempt int, token string, now time.Time) error {
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

// Lapse ends an expired lease.
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
