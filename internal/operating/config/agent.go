package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/services"
)

// An Agent is one entry of agents with its manifest.
type Agent struct {
	Binding      agent.Binding
	Subject      policy.Subject
	Card         *envelope.Card // nil: the agent has no capabilities
	RefsRequired bool
	Duplicate    bool              // another entry has the same id, so that neither can be run
	Warnings     envelope.Findings // about its manifest, for the operator
	Index        int               // of its entry in the file
	Entry        Entry
	Unknown      []string // agents and tools that its entry names and that are not there
}

// ReadAgents reads the manifests of all entries. An invalid manifest disables its own
// agent only (AINL-10). An id that two entries or manifests claim disables both
// (AINL-11).
func (c *Config) ReadAgents() []Agent {
	agents := make([]Agent, len(c.Agents))
	entries, claims := map[string]int{}, map[string]int{}
	for i, e := range c.Agents {
		agents[i] = c.agent(e)
		id := strings.ToLower(e.ID)
		entries[id]++
		claims[id]++
		if m := agents[i].Subject.Manifest; m != nil && strings.ToLower(m.AgentID) != id {
			claims[strings.ToLower(m.AgentID)]++
		}
	}
	for i := range agents {
		m := &agents[i]
		id := strings.ToLower(m.Binding.ID)
		m.Duplicate = entries[id] > 1
		if manifest := m.Subject.Manifest; manifest != nil && manifest.AgentID != m.Binding.ID {
			m.disable(fmt.Sprintf("its manifest is for the agent %q", manifest.AgentID))
		}
		if claims[id] > 1 {
			m.disable(fmt.Sprintf("the id %q is claimed by %d entries or manifests", m.Binding.ID, claims[id]))
		}
		m.Binding.Manifest = m.Subject.Manifest
	}
	return agents
}

// Replica returns the id of the entry of which the agent is a replica, or "".
func (m *Agent) Replica() string { return m.Entry.replica }

// disable has tasks for the agent refused. Its running tasks still end.
func (m *Agent) disable(why string) { m.Subject.Unfit, m.Subject.Manifest = why, nil }

// Problem returns why tasks for the agent are refused, or nil.
func (m *Agent) Problem() error {
	if m.Subject.Unfit == "" {
		return nil
	}
	return errors.New(m.Subject.Unfit)
}

// agent reads the manifest of an entry.
func (c *Config) agent(e Entry) Agent {
	m := Agent{Binding: c.binding(e), RefsRequired: e.Refs == "required", Index: e.index, Entry: e, Unknown: c.unknownNames(e)}
	most, _ := envelope.ParseSensitivity(e.MaxSensitivity) // check has seen to it
	m.Subject = policy.Subject{
		TaskTypes: e.TaskTypes, Environments: e.Environments, Tools: e.Tools, MaxSensitivity: most,
		Metered:        m.Binding.Output.Metered(),
		Unpriced:       m.Binding.Output.Metered() && !m.Binding.Output.Priced(),
		NoFiles:        m.Binding.Worker != nil && m.Binding.Sandbox.Active(),
		NoDir:          m.Binding.Worker != nil,
		AllowUnmetered: e.AllowUnmetered, KillAtWindowEnd: e.KillAtWindowEnd, Calls: e.callRules(),
	}
	if e.Manifest != "" {
		manifest, warnings, err := c.manifest(e.Manifest)
		if err != nil {
			m.disable(err.Error())
		}
		m.Subject.Manifest, m.Warnings = e.manifestFor(manifest), warnings
	}
	if e.Card != "" {
		c.addCard(&m, e)
	}
	m.findInbox()
	return m
}

// manifest reads a manifest, and returns warnings about it.
func (c *Config) manifest(path string) (*envelope.Manifest, envelope.Findings, error) {
	text, err := os.ReadFile(c.Resolve(path))
	if err != nil {
		return nil, nil, fmt.Errorf("manifest: %w", err)
	}
	manifest, findings := c.decodeManifest(text)
	if findings.Refused() {
		return nil, nil, fmt.Errorf("manifest %s: %s", path, findings.Refusals())
	}
	if _, ok := c.Policy.Rules().Class(manifest.BudgetClass); manifest.BudgetClass != "" && !ok {
		findings = append(findings, envelope.Finding{
			Field: "budget_class", Message: fmt.Sprintf("%q is not in policy.budget_classes; no cap applied", manifest.BudgetClass),
		})
	}
	if len(manifest.PolicyRefs) > 0 {
		findings = append(findings, envelope.Finding{
			Field: "policy_refs", Message: fmt.Sprintf("nobody here resolves %q; the manifest's own fields are held", manifest.PolicyRefs),
		})
	}
	return &manifest, findings, nil
}

// decodeManifest decodes a manifest under the control of near misses.
func (c *Config) decodeManifest(text []byte) (envelope.Manifest, envelope.Findings) {
	manifest, findings := envelope.DecodeManifest(text)
	return manifest, append(findings, c.Policy.nearMisses().Apply(manifest.NearMisses)...)
}

// Bindings returns the bindings of all agents whose id is unique.
func Bindings(agents []Agent) []agent.Binding {
	var bindings []agent.Binding
	for _, m := range agents {
		if !m.Duplicate {
			bindings = append(bindings, m.Binding)
		}
	}
	return bindings
}

// findInbox fills in the file of an inbox: that of the manifest, or one in a directory
// of the agent (AINL-21).
func (m *Agent) findInbox() {
	in := m.Binding.Inbox
	if in == nil || in.File != "" {
		return
	}
	if manifest := m.Subject.Manifest; manifest != nil {
		in.File = manifest.Contact.InboxFile
	}
	if in.File == "" {
		in.File = "agents/" + m.Binding.ID + "/inbox.jsonl"
	}
}

// binding converts an entry to a binding. Relative paths start at the directory of the
// configuration file.
func (c *Config) binding(e Entry) agent.Binding {
	b := agent.Binding{
		ID: e.ID, Dialect: envelope.Dialect(e.Dialect), Definition: e.defined,
		Profile: agent.Profile(e.Profile), Permission: agent.Permission(e.Permission), Tools: e.Tools, Model: e.Model, Command: slices.Clone(e.Exec.Command),
		Output: agent.Format(e.Exec.Output), Stdin: agent.Stdin(e.Exec.Stdin),
		Cwd: c.Resolve(e.Exec.Cwd), Worktree: e.Exec.Worktree != nil, Commits: c.atRunner, Env: e.Exec.Env, MaxOutput: e.Exec.MaxOutput,
		Timeout: e.Timeout, IdleTimeout: e.IdleTimeout, ExitTimeout: e.ExitTimeout,
		Concurrency: e.Concurrency, Retries: e.Retries,
		Backoff: e.Backoff, Idempotent: e.Idempotent,
		Resend: agent.Resend(e.Resend), AllowUnmetered: e.AllowUnmetered,
	}
	if w := e.Exec.Worktree; w != nil {
		b.Copy = w.Copy
		if w.Setup != nil {
			b.Setup = slices.Clone(w.Setup.Command)
			c.resolveCommand(b.Setup)
		}
	}
	for _, dir := range e.Exec.Workdirs {
		b.Workdirs = append(b.Workdirs, c.Resolve(dir))
	}
	c.resolveCommand(b.Command)
	if e.Inbox != nil {
		b.Inbox = &agent.Inbox{File: e.Inbox.File, Lease: e.Inbox.Lease}
	}
	if w := e.Worker; len(w.Command) > 0 {
		b.Worker = &agent.Worker{Command: slices.Clone(w.Command), Count: w.Count, InFlight: w.InFlight}
		b.Cwd, b.Env = c.Resolve(w.Cwd), w.Env
		c.resolveCommand(b.Worker.Command)
	}
	if service, env := serviceOf(c, e); service != nil {
		b.Service, b.Env = service, append(env, b.Env...)
	}
	if e.Remote != nil {
		b.Remote = &agent.Remote{Needs: slices.Clone(e.Remote.Needs), Runners: slices.Clone(e.Remote.Runners)}
		b.Worktree = b.Worktree || e.Worktree
	}
	b.Servers = services.Named(c.Tools, e.Tools)
	for _, s := range b.Servers {
		c.resolveCommand(s.Command)
	}
	b.Sandbox = c.sandboxOf(e)
	return b.Filled()
}

// resolveCommand makes the path of a command absolute, unless it is a name on
// PATH.
func (c *Config) resolveCommand(command []string) {
	if len(command) > 0 && strings.Contains(command[0], "/") {
		command[0] = c.Resolve(command[0])
	}
}

// Resolve makes a path of the configuration absolute; an empty one stays empty.
func (c *Config) Resolve(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.dir, path)
}

// manifestFor returns the manifest of an entry with the id of its replica.
func (e Entry) manifestFor(m *envelope.Manifest) *envelope.Manifest {
	if m == nil || e.replica == "" || m.AgentID != e.replica {
		return m
	}
	own := *m
	own.AgentID = e.ID
	return &own
}

// unknownNames returns warnings about agents that an entry names and that are not configured, and
// about tools that its program doesn't have.
func (c *Config) unknownNames(e Entry) []string {
	var warnings []string
	warn := func(where, id string) {
		if id != "" && !slices.ContainsFunc(c.Agents, func(other Entry) bool { return other.ID == id }) {
			warnings = append(warnings, fmt.Sprintf("%s: no agent %q is configured", where, id))
		}
	}
	if e.defined != nil {
		for i, id := range e.defined.AllowedAgents {
			warn(fmt.Sprintf("definition: allowed_agents[%d]", i), id)
		}
		warn("definition: overseer", e.defined.Overseer)
	}
	for i, rule := range e.OnError {
		if rule.Do == "reassign" && rule.To != Route {
			warn(fmt.Sprintf("on_error[%d].to", i), rule.To)
		}
	}
	for _, name := range agent.Profile(e.Profile).UnknownTools(e.Tools) {
		warnings = append(warnings, "tools: "+agent.Profile(e.Profile).UnknownToolText(name))
	}
	return warnings
}
