package schema

import (
	"cmp"
	"fmt"
	"slices"

	"mailboxd/envelope"
)

// A Step of a workflow says what the answer of a task has to be (CLUTCH-42).
type Step struct {
	ID          string
	Type        string   // of the message, such as task.result; "" for any
	PayloadType string   // "" for any
	Required    []string // members of the payload
	Schema      string   // of the payload; "" for that of the payload type
	Review      string   // the agent that has to approve the answer; "" for none (CLUTCH-92)
}

// Ref returns the schema that the answer has to follow; "" for none.
func (s Step) Ref() string { return cmp.Or(s.Schema, RefOf(s.PayloadType)) }

// Workflows have the steps of each workflow, by its name. The zero value has none.
type Workflows map[string][]Step

// Step returns a step, and whether there is one of that name.
func (w Workflows) Step(name StepName) (Step, bool) {
	for _, s := range w[name.Workflow] {
		if s.ID == name.Step {
			return s, true
		}
	}
	return Step{}, false
}

// StepOf returns the step that a task is for, and whether it is known.
func (w Workflows) StepOf(t envelope.Task) (Step, bool) { return w.Step(StepNameOf(t)) }

// Unknown returns the step that a task names and that is not known, as words; "" for none.
func (w Workflows) Unknown(t envelope.Task) string {
	if len(t.Metadata) == 0 && t.Clutch == nil {
		return ""
	}
	name := StepNameOf(t)
	if _, ok := w.Step(name); ok || name == (StepName{}) {
		return ""
	}
	return fmt.Sprintf("step %q of workflow %q", name.Step, name.Workflow)
}

// ReviewerOf returns the agent that has to approve the answer of a task; "" for none.
func (w Workflows) ReviewerOf(t envelope.Task) string {
	step, _ := w.StepOf(t)
	return step.Review
}

// HasReviewers reports whether a step names an agent that has to approve.
func (w Workflows) HasReviewers() bool {
	for _, steps := range w {
		if slices.ContainsFunc(steps, func(s Step) bool { return s.Review != "" }) {
			return true
		}
	}
	return false
}

// Names reports whether the answer of a task has to follow a schema, by its contract or its
// step.
func (w Workflows) Names(t envelope.Task, ref string) bool {
	step, ok := w.StepOf(t)
	return ref != "" && (t.Contract != nil && t.Contract.SchemaRef == ref || ok && step.Ref() == ref)
}

// A StepName names a step of a workflow. The zero value names none.
type StepName struct{ Workflow, Step string }

// StepNameOf returns the step that a task names: in Clutch by meta.workflow and meta.step, and
// in other dialects by the metadata mbx.workflow and mbx.step.
func StepNameOf(t envelope.Task) StepName {
	if t.Clutch != nil {
		return StepName{t.Clutch.Workflow, t.Clutch.Step}
	}
	return StepName{t.Named(envelope.WorkflowKey), t.Named(envelope.StepKey)}
}
