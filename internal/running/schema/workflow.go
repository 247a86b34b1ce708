package schema

import (
	"cmp"
	"fmt"
	"maps"
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

// Unknown returns the field in which a task names a step that is not known, and what is wrong with
// it; "" for nothing. In Clutch the field is one of meta (CLUTCH-42), and else the metadata.
func (w Workflows) Unknown(t envelope.Task) (field, why string) {
	if len(t.Metadata) == 0 && t.Clutch == nil {
		return "", ""
	}
	name := StepNameOf(t)
	if _, ok := w.Step(name); ok || name == (StepName{}) {
		return "", ""
	}
	steps, known := w[name.Workflow]
	switch {
	case t.Clutch == nil:
		return "metadata", fmt.Sprintf("names step %.250q of workflow %.250q, which is not in workflows, so the answer is not held to it", name.Step, name.Workflow)
	case name.Workflow == "":
		return "meta.workflow", fmt.Sprintf("required, since meta.step names step %.250q", name.Step)
	case !known:
		return "meta.workflow", fmt.Sprintf("names %.250q, which is not in workflows; known: %q", name.Workflow, slices.Sorted(maps.Keys(w)))
	case name.Step == "":
		return "meta.step", fmt.Sprintf("required, since meta.workflow names %.250q; its steps: %q", name.Workflow, stepIDs(steps))
	}
	return "meta.step", fmt.Sprintf("names %.250q, which is no step of workflow %.250q; its steps: %q", name.Step, name.Workflow, stepIDs(steps))
}

func stepIDs(steps []Step) (ids []string) {
	for _, s := range steps {
		ids = append(ids, s.ID)
	}
	return ids
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
