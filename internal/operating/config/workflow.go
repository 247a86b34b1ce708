package config

import (
	"fmt"
	"slices"

	"mailboxd/internal/running/schema"
)

// A Workflow says what the answers of its steps have to be (CLUTCH-42).
type Workflow struct {
	Workflow string `mapstructure:"workflow"`
	Steps    []Step `mapstructure:"steps"`
}

// A Step is one step of a workflow.
type Step struct {
	ID      string  `mapstructure:"id"`
	Expects Expects `mapstructure:"expects"`
	Schema  string  `mapstructure:"schema"`
	Review  string  `mapstructure:"review"`
}

// Expects is what the answer of a step has to be.
type Expects struct {
	Type        string   `mapstructure:"type"`
	PayloadType string   `mapstructure:"payload_type"`
	Required    []string `mapstructure:"required"`
}

// Steps returns the steps of all workflows.
func (c *Config) Steps() schema.Workflows {
	all := schema.Workflows{}
	for _, w := range c.Workflows {
		for _, s := range w.Steps {
			all[w.Workflow] = append(all[w.Workflow], schema.Step{
				ID: s.ID, Type: s.Expects.Type, PayloadType: s.Expects.PayloadType, Required: s.Expects.Required,
				Schema: s.Schema, Review: s.Review,
			})
		}
	}
	return all
}

// checkWorkflows refuses steps without a name, and what no answer can be.
func (c *Config) checkWorkflows() (checks []error) {
	for i, w := range c.Workflows {
		key := fmt.Sprintf("workflows[%d]", i)
		same := func(other Workflow) bool { return other.Workflow == w.Workflow }
		if w.Workflow == "" || slices.IndexFunc(c.Workflows, same) != i {
			checks = append(checks, wrong(key+".workflow", "%q is missing or there twice", w.Workflow))
		}
		for j, s := range w.Steps {
			at := fmt.Sprintf("%s.steps[%d]", key, j)
			same := func(other Step) bool { return other.ID == s.ID }
			if s.ID == "" || slices.IndexFunc(w.Steps, same) != j {
				checks = append(checks, wrong(at+".id", "%q is missing or there twice", s.ID))
			}
			if s.Expects.Type != "" {
				checks = append(checks, oneOf(at+".expects.type", s.Expects.Type, "task.result"))
			}
			if s.Review != "" && !slices.ContainsFunc(c.Agents, func(e Entry) bool { return e.ID == s.Review }) {
				checks = append(checks, wrong(at+".review", "no agent %q is configured", s.Review))
			}
		}
	}
	return checks
}

// checkSteps finds steps whose schema is not there, so that their answers are not held against
// it.
func (r *reading) checkSteps(schemas *schema.Set) {
	for i, w := range r.config.Workflows {
		for j, s := range w.Steps {
			key := fmt.Sprintf("workflows[%d].steps[%d].schema", i, j)
			if s.Schema != "" && !schemas.Has(s.Schema) {
				r.add(Refuses, wrong(key, "there is no schema %s; see: mailboxd schema list", s.Schema))
			}
			if ref := schema.RefOf(s.Expects.PayloadType); s.Schema == "" && ref != "" && !schemas.Has(ref) {
				r.add(Warns, wrong(key, "%s has no schema %s, so only its required members are checked", s.Expects.PayloadType, ref))
			}
		}
	}
}
