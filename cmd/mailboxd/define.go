package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

// gather reads the definitions that entries of agents name, and makes the
// replicas: one agent for each, with an id of its own (CAP-22).
func (c *config) gather() error {
	c.written, c.Agents = c.Agents, nil
	for i, e := range c.written {
		e.at = i
		if err := c.define(&e); err != nil {
			return fmt.Errorf("agents[%d].definition: %w", i, err)
		}
		if e.Replicas < 0 || e.Replicas > mostReplicas {
			return fmt.Errorf("agents[%d].replicas: must be from 0 to %d", i, mostReplicas)
		}
		if e.Replicas == 0 {
			c.Agents = append(c.Agents, e)
		}
		for n := range e.Replicas {
			c.Agents = append(c.Agents, e.instance(n+1))
		}
	}
	return nil
}

// mostReplicas is more than one machine can run, and no slip of the keyboard.
const mostReplicas = 1000

// instance is one of the replicas of an entry.
func (e agentEntry) instance(n int) agentEntry {
	e.replica, e.ID = e.ID, fmt.Sprintf("%s-%d", e.ID, n)
	if e.defined != nil {
		own := *e.defined
		own.ID = e.ID
		e.defined = &own
	}
	return e
}

// define reads the definition of an entry, and checks what only the entry knows
// (CAP-01 to CAP-07). What is wrong in the file is named by its field.
func (c *config) define(e *agentEntry) error {
	if e.Definition == "" {
		return nil
	}
	text, err := os.ReadFile(c.resolve(e.Definition))
	if err != nil {
		return err
	}
	d, findings := dialect.DecodeDefinition(text)
	if findings.Refused() {
		return fmt.Errorf("%s: %s", e.Definition, findings.Refusals())
	}
	ids := []string{e.ID}
	for n := range min(max(e.Replicas, 0), mostReplicas) {
		ids = append(ids, e.instance(n+1).ID)
	}
	switch {
	case !slices.Contains(ids, d.ID):
		return fmt.Errorf("%s: id: is %q, and the agent is %q", e.Definition, d.ID, e.ID)
	case e.Replicas > 0 && slices.Contains(ids, d.Overseer):
		return fmt.Errorf("%s: overseer: is the agent itself, or another one like it", e.Definition)
	}
	e.defined = &d
	return nil
}

// unknownAgents says which agents an entry names that are not there: they may
// come later, so that is only worth a warning.
func (c *config) unknownAgents(e agentEntry) []string {
	var doubts []string
	doubt := func(where, id string) {
		if id != "" && !slices.ContainsFunc(c.Agents, func(other agentEntry) bool { return other.ID == id }) {
			doubts = append(doubts, fmt.Sprintf("%s: no agent %q is configured", where, id))
		}
	}
	if e.defined != nil {
		for i, id := range e.defined.AllowedAgents {
			doubt(fmt.Sprintf("definition: allowed_agents[%d]", i), id)
		}
		doubt("definition: overseer", e.defined.Overseer)
	}
	for i, rule := range e.OnError {
		if rule.Do == "reassign" {
			doubt(fmt.Sprintf("on_error[%d].to", i), rule.To)
		}
	}
	return doubts
}

// asInstance is a manifest as a replica has it: that of its entry is about each.
func (e agentEntry) asInstance(m *envelope.Manifest) *envelope.Manifest {
	if m == nil || e.replica == "" || m.AgentID != e.replica {
		return m
	}
	own := *m
	own.AgentID = e.ID
	return &own
}

// checkDialogue refuses what an agent could not be spoken with.
func (e agentEntry) checkDialogue(key string) []error {
	checks := []error{oneOf(key+".dialect", cmp.Or(e.Dialect, "ainl"), "ainl", "clowl", "cap")}
	if len(e.Worker.Command) > 0 && e.Dialect != "ainl" && e.Dialect != "" {
		checks = append(checks, fmt.Errorf("%s.dialect: a worker speaks ainl", key))
	}
	if e.replica != "" && e.Inbox != nil && e.Inbox.File != "" {
		checks = append(checks, fmt.Errorf("%s.inbox.file: each of the replicas needs a file of its own; leave it empty", key))
	}
	for i, rule := range e.OnError {
		checks = append(checks, rule.check(fmt.Sprintf("%s.on_error[%d]", key, i), e.ID))
	}
	return checks
}
