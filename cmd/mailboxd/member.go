package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/agent"
	"mailboxd/internal/policy"
)

// A member is one entry of agents with its manifest, as it is used.
type member struct {
	binding      agent.Binding
	subject      policy.Subject
	refsRequired bool
	twin         bool              // another entry has the same id, so that neither can be run
	doubts       envelope.Findings // about its manifest, for the operator
	entry        agentEntry
	strangers    []string // agents that its entry names and that are not there
}

// members reads all entries of agents. A manifest that is wrong makes its own
// agent unfit and no other (AINL-10); an id that two claim, by entry or by
// manifest, makes both unfit, for nobody could say which is meant (AINL-11).
func (c *config) members() []member {
	members := make([]member, len(c.Agents))
	entries, claims := map[string]int{}, map[string]int{}
	for i, e := range c.Agents {
		members[i] = c.member(e)
		id := strings.ToLower(e.ID)
		entries[id]++
		claims[id]++
		if m := members[i].subject.Manifest; m != nil && strings.ToLower(m.AgentID) != id {
			claims[strings.ToLower(m.AgentID)]++
		}
	}
	for i := range members {
		m := &members[i]
		id := strings.ToLower(m.binding.ID)
		m.twin = entries[id] > 1
		if manifest := m.subject.Manifest; manifest != nil && manifest.AgentID != m.binding.ID {
			m.disable(fmt.Sprintf("its manifest is for the agent %q", manifest.AgentID))
		}
		if claims[id] > 1 {
			m.disable(fmt.Sprintf("the id %q is claimed by %d entries or manifests", m.binding.ID, claims[id]))
		}
		m.binding.Manifest = m.subject.Manifest
	}
	return members
}

// disable keeps tasks from a member. What runs of it already is still read as
// its entry says.
func (m *member) disable(why string) { m.subject.Unfit, m.subject.Manifest = why, nil }

// problem is why the member cannot be asked, or nil.
func (m *member) problem() error {
	if m.subject.Unfit == "" {
		return nil
	}
	return errors.New(m.subject.Unfit)
}

func (c *config) member(e agentEntry) member {
	m := member{binding: c.binding(e), refsRequired: e.Refs == "required", entry: e, strangers: c.unknownAgents(e)}
	most, _ := envelope.ParseSensitivity(e.MaxSensitivity) // check has seen to it
	m.subject = policy.Subject{
		TaskTypes: e.TaskTypes, Environments: e.Environments, Tools: e.Tools, MaxSensitivity: most,
		Metered:        m.binding.Output.Metered(),
		Unpriced:       m.binding.Output.Metered() && !m.binding.Output.Priced(),
		AllowUnmetered: e.AllowUnmetered, KillAtWindowEnd: e.KillAtWindowEnd,
	}
	if e.Manifest != "" {
		manifest, doubts, err := c.manifest(e.Manifest)
		if err != nil {
			m.disable(err.Error())
		}
		m.subject.Manifest, m.doubts = e.asInstance(manifest), doubts
	}
	m.findInbox()
	return m
}

// manifest reads what an agent may do, and what an operator may want to know
// of that.
func (c *config) manifest(path string) (*envelope.Manifest, envelope.Findings, error) {
	text, err := os.ReadFile(c.resolve(path))
	if err != nil {
		return nil, nil, fmt.Errorf("manifest: %w", err)
	}
	manifest, findings := envelope.DecodeManifest(text)
	if findings.Refused() {
		return nil, nil, fmt.Errorf("manifest %s: %s", path, findings.Refusals())
	}
	if _, ok := c.Policy.rules().Class(manifest.BudgetClass); manifest.BudgetClass != "" && !ok {
		findings = append(findings, envelope.Finding{
			Field: "budget_class", Message: fmt.Sprintf("%q is none of policy.budget_classes, so it caps nothing", manifest.BudgetClass),
		})
	}
	if len(manifest.PolicyRefs) > 0 {
		findings = append(findings, envelope.Finding{
			Field: "policy_refs", Message: fmt.Sprintf("nobody here resolves %q; the manifest's own fields are held", manifest.PolicyRefs),
		})
	}
	return &manifest, findings, nil
}

// bindingsOf lists those that can be run.
func bindingsOf(members []member) []agent.Binding {
	var bindings []agent.Binding
	for _, m := range members {
		if !m.twin {
			bindings = append(bindings, m.binding)
		}
	}
	return bindings
}

// remark tells the operator, once for each reading of the configuration, who
// cannot be asked, and what is odd about a manifest.
func (t *team) remark(members []member) {
	for _, m := range members {
		if m.subject.Unfit != "" {
			t.log.Error().Str("agent", m.binding.ID).Str("reason", m.subject.Unfit).Msg("agent disabled; tasks for it are refused")
		} else if len(m.doubts) > 0 {
			t.log.Warn().Str("agent", m.binding.ID).Stringer("reason", m.doubts).Msg("manifest taken with doubts")
		}
		for _, doubt := range m.strangers {
			t.log.Warn().Str("agent", m.binding.ID).Str("reason", doubt).Msg("agent names one that is not there")
		}
	}
}
