package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mailboxd/envelope"
)

// Controls on the choice of the agent.

// role: the agent's manifest must have the requested role (AINL-13). A request without a
// role gets here only in the legacy reading.
func (q *question) role() envelope.Level {
	roles := q.manifest.RoleTypes
	if q.Role == "" || len(roles) == 0 {
		return notApplicable
	}
	if !slices.Contains(roles, q.Role) {
		q.object(envelope.RoleMismatch, "target_role", fmt.Sprintf("agent %q has no role %.80q, only %q", q.Agent, q.Role, roles))
	}
	return envelope.LevelDaemon
}

// taskType: an agent with a list of types accepts only these (AINL-35).
func (q *question) taskType() envelope.Level {
	types := q.agent.TaskTypes
	if len(types) == 0 {
		return notApplicable
	}
	if !matches(q.Type, types) && !slices.ContainsFunc(types, func(t string) bool { return strings.HasPrefix(t, q.Type+":") }) { // CLOWL-29
		q.object(envelope.UnsupportedTask, "task_type", fmt.Sprintf("agent %q does not take the type %.80q, only %q", q.Agent, q.Type, types))
	}
	return envelope.LevelDaemon
}

// environment: an agent with a list of environments works only in these (AINL-52). A task
// without an environment could mean any.
func (q *question) environment() envelope.Level {
	places := q.agent.Environments
	if len(places) == 0 {
		return notApplicable
	}
	switch {
	case q.Environment == "":
		q.object(envelope.PolicyViolation, "policy_context.environment", fmt.Sprintf("is missing, and agent %q works in %q only", q.Agent, places))
	case !slices.Contains(places, q.Environment):
		q.object(envelope.PolicyViolation, "policy_context.environment", fmt.Sprintf("agent %q does not work in %.80q, only in %q", q.Agent, q.Environment, places))
	}
	return envelope.LevelDaemon
}

// external is the trust domain of an unknown requester.
const external = "external"

// trustDomain: the agent's domain must trust the requester's domain (AINL-60). The
// requester's domain is that of the agent with its id; the id isn't authenticated.
func (q *question) trustDomain() envelope.Level {
	if len(q.rules.Trust) == 0 {
		return notApplicable
	}
	from, to := domainOr(q.rules.Domains[q.Requester]), domainOr(q.manifest.TrustDomain)
	if !q.rules.Trusts(from, to) {
		q.object(envelope.PolicyViolation, "requester_id", fmt.Sprintf("is of the trust domain %q, which may not ask agents of %q", from, to))
	}
	return envelope.LevelDaemon
}

// Trusts reports whether requesters of one trust domain may ask agents of another; "" is the domain of
// those that have none.
func (r Rules) Trusts(from, to string) bool {
	for _, row := range r.Trust {
		asks, _ := path.Match(row.From, domainOr(from))
		asked, _ := path.Match(row.To, domainOr(to))
		if asks && asked {
			return row.Allow
		}
	}
	return true
}

func domainOr(domain string) string {
	if domain == "" {
		return external
	}
	return domain
}
