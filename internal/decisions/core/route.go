package core

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Unbound reports whether a task waits for the choice of its agent. One that waits for the end of
// another task gets its agent after that.
func Unbound(t task.Task) bool {
	return t.State == task.Held && t.Agent == envelope.Everybody && slices.Contains(t.Reasons, task.Routing) && !slices.Contains(t.Reasons, task.After)
}

// Route gives an unbound task to an agent, and moves it as the verdict requires. The choice is
// durable before the task can start, so the same agent gets it after a restart.
type Route struct {
	Task    int64
	Seen    Seen
	Agent   string
	Request envelope.Task  // for that agent
	Verdict task.Verdict   // on the task for that agent
	Record  jsontext.Value // the decision, an object
}

func (c *Route) decide(d *decision) error {
	t, err := d.state.find(c.Task, c.Seen)
	if err != nil || !Unbound(t.Task) || c.Agent == "" || c.Agent == envelope.Everybody {
		return ErrStale
	}
	change := task.Change{To: task.Held, Reasons: t.Reasons, Until: t.Until, Agent: c.Agent}
	d.add(t, moved(t, change), task.KindRoutingDecided, c.Record)
	d.obey(t, c.Request, c.Verdict)
	return nil
}

// Unbind takes a task back from its chosen agent, which can't start it any more, so that
// another one is chosen. The task has not begun. An approval was for the run of that agent, and
// is void.
type Unbind struct {
	Task int64
	Seen Seen
	Why  string
}

func (c *Unbind) decide(d *decision) error {
	t, err := d.state.find(c.Task, c.Seen)
	if err != nil || !Startable(t.State) || t.Began || t.Agent == envelope.Everybody {
		return ErrStale
	}
	if last := t.Start; isOpen(last) || isGiven(last) {
		d.conclude(t, last, task.Void, "the chosen agent can't take the task any more")
	}
	change := task.Change{To: task.Held, Reasons: append(Lasting(t.Reasons), task.Routing), Until: t.Deadline, Agent: envelope.Everybody}
	d.add(t, moved(t, change), task.KindTaskHeld, map[string]any{"reasons": change.Reasons, "why": c.Why})
	return nil
}
