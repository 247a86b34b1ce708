package core_test

import (
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// AINL-01, CLOWL-35: chains of delegation end.
func TestADelegatedTaskStaysInsideTheLimitsOfItsLineage(t *testing.T) {
	above := []task.Task{{ID: "t2", Agent: "b", Depth: 2}, {ID: "t1", Agent: "a", Depth: 1}}
	for name, c := range map[string]struct {
		depth, children int // the limits
		agent           string
		want            envelope.Kind
	}{
		"as deep as it may be": {3, 5, "c", ""},
		"deeper":               {2, 5, "c", envelope.PolicyViolation},
		"for its parent":       {3, 5, "b", envelope.DelegationCycle},
		"for the one above":    {3, 5, "a", envelope.DelegationCycle},
		"the last child":       {3, 5, "c", ""},
		"one child too many":   {3, 4, "c", envelope.PolicyViolation},
	} {
		l := core.Lineage{Ancestors: above, Children: 4, MaxDepth: c.depth, MaxChildren: c.children}
		for mode, kind := range map[envelope.Mode]envelope.Kind{envelope.Enforce: c.want, envelope.Warn: "", envelope.Off: ""} {
			v := l.Admit(task.Verdict{Admit: true}, c.agent, mode)
			if v.Findings.Kind() != kind || v.Admit != (kind == "") || (len(v.Findings) > 0) != (c.want != "" && mode != envelope.Off) {
				t.Errorf("%s, mode %d: Admit = %+v; want kind %q", name, mode, v, kind)
			}
			level := map[envelope.Mode]envelope.Level{envelope.Enforce: envelope.LevelDaemon, envelope.Warn: envelope.LevelAdvisory}[mode]
			if got := v.Levels[envelope.ControlLineage]; got != level && v.Admit {
				t.Errorf("%s, mode %d: level %q; want %q", name, mode, got, level)
			}
		}
	}
}

func TestADelegatedTaskIsOneBelowItsParent(t *testing.T) {
	parent := task.Task{Seq: 1, ID: "p", Revision: 1, Latest: true, State: task.Running, Attempt: 1, Depth: 2}
	state := core.NewState(core.Task{Task: parent})
	accept := &core.Accept{Request: envelope.Task{ID: "c", Agent: "b"}, Verdict: task.Verdict{Admit: true}, Parent: &parent}
	events, err := core.Decide(state, accept, core.Config{}, time.Unix(9, 0))
	if err != nil {
		t.Fatal(err)
	}
	core.Number(events, 2)
	core.Apply(state, events)
	if child := state.Task(2); child.Parent != 1 || child.Depth != 3 {
		t.Errorf("the child of a task at depth 2 has parent %d and depth %d; want 1 and 3", child.Parent, child.Depth)
	}
}
