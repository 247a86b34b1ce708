package config

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"mailboxd/envelope/dialect"
)

// gather reads the definitions of all entries, and makes an agent for each replica
// (CAP-22).
func (c *Config) gather() (checks []error) {
	c.written, c.Agents = c.Agents, nil
	for i, e := range c.written {
		e.index = i
		if err := c.define(&e); err != nil {
			checks = append(checks, wrong(fmt.Sprintf("agents[%d].definition", i), "%v", err))
		}
		if e.Replicas < 0 || e.Replicas > maxReplicas {
			checks = append(checks, wrong(fmt.Sprintf("agents[%d].replicas", i), "must be from 0 to %d", maxReplicas))
			e.Replicas = 0
		}
		if e.Replicas == 0 {
			c.Agents = append(c.Agents, e)
		}
		for n := range e.Replicas {
			c.Agents = append(c.Agents, e.instance(n+1))
		}
	}
	return checks
}

// maxReplicas is the limit of replicas.
const maxReplicas = 1000

// instance returns a replica of an entry.
func (e Entry) instance(n int) Entry {
	e.replica, e.ID = e.ID, fmt.Sprintf("%s-%d", e.ID, n)
	if e.defined != nil {
		own := *e.defined
		own.ID = e.ID
		e.defined = &own
	}
	return e
}

// define reads the definition of an entry and checks it against the entry (CAP-01 to
// CAP-07).
func (c *Config) define(e *Entry) error {
	if e.Definition == "" {
		return nil
	}
	text, err := os.ReadFile(c.Resolve(e.Definition))
	if err != nil {
		return errors.New(unreadable(err))
	}
	d, findings := dialect.DecodeDefinition(text)
	if findings.Refused() {
		return fmt.Errorf("%s: %s", e.Definition, findings.Refusals())
	}
	ids := []string{e.ID}
	for n := range min(max(e.Replicas, 0), maxReplicas) {
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
