package core_test

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// How agents are chosen in a world.

// routed is the agent of a line that names none.
const routed = envelope.Everybody

// choices are the agents among which the world chooses.
var choices = []string{plain, repeats, asksPre}

// isRouted reports whether the line of a revision names no agent.
func isRouted(t task.Task) bool { return strings.Contains(t.Hash, "/"+routed+"/") }

// seen returns the line of a revision, with the agent that was chosen for it.
func (w *world) seen(t *core.Task) line {
	l := w.requests[t.Seq]
	if isRouted(t.Task) {
		l.agent, l.routed = t.Agent, true
	}
	return l
}

// choose gives an unbound task to an agent, or finds that no agent can do it.
func (w *world) choose(t *core.Task) {
	if len(core.Lasting(t.Reasons)) > 0 {
		return
	}
	bound := w.seen(t)
	if w.pick(12) == 0 {
		v := task.Verdict{Findings: envelope.Findings{{Kind: envelope.NoCapableAgent, Message: "nobody can"}}, Routing: jsontext.Value("{}")}
		w.later(&core.Judge{Task: t.Seq, Seen: core.See(t.Task), Request: bound.request(), Verdict: v})
		return
	}
	bound.agent = choices[w.pick(len(choices))]
	w.later(&core.Route{
		Task: t.Seq, Seen: core.See(t.Task), Agent: bound.agent, Request: bound.request(), Verdict: w.verdict(bound),
		Record: jsontext.Value(fmt.Sprintf(`{"selected":%q}`, bound.agent)),
	})
}

// takeBack takes a task from its agent, now and then, also if it has begun: the core refuses that.
func (w *world) takeBack(t *core.Task) bool {
	if !isRouted(t.Task) || t.Agent == routed || !core.Startable(t.State) || w.pick(8) > 0 {
		return false
	}
	w.later(&core.Unbind{Task: t.Seq, Seen: core.See(t.Task), Why: "is paused"})
	return true
}

// checkKept wants a new revision without an agent, or with the one that the revision before was
// given to: a retry keeps it.
func (w *world) checkKept(t task.Task, e core.Event) {
	if t.Agent == routed {
		return
	}
	for _, earlier := range w.state.Revisions(t.ID) {
		if e.Kind == task.KindTaskResubmitted && earlier.Revision == t.Revision-1 && w.chosen[earlier.Seq] == t.Agent {
			w.chosen[e.Task] = t.Agent
			return
		}
	}
	w.fail("%s begins with %s, which was not chosen", t.ID, t.Agent)
}

// checkRoute wants a decision before the run of a routed task, and the run at its agent.
func (w *world) checkRoute(t *core.Task, e core.Event) {
	if c, ok := e.Change.(*core.Added); ok && isRouted(c.Task) {
		w.checkKept(c.Task, e)
		return
	}
	if t == nil || !isRouted(t.Task) {
		return
	}
	switch c := e.Change.(type) {
	case *core.Moved:
		switch c.Agent {
		case "":
		case routed:
			if w.begun[t.Seq] > 0 {
				w.fail("%s is taken from %s, which has begun it", t.ID, t.Agent)
			}
			delete(w.chosen, t.Seq)
		default:
			if w.chosen[t.Seq] != "" {
				w.fail("%s is given to %s, and %s has it", t.ID, c.Agent, w.chosen[t.Seq])
			}
			if e.Kind != task.KindRoutingDecided {
				w.fail("%s is given to %s without a decision", t.ID, c.Agent)
			}
			w.chosen[t.Seq] = c.Agent
		}
	case *core.RunIntended:
		if w.chosen[t.Seq] == "" || w.chosen[t.Seq] != t.Agent {
			w.fail("%s is to run at %s, and was given to %q", t.ID, t.Agent, w.chosen[t.Seq])
		}
	}
}
