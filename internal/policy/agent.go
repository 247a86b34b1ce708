package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mailboxd/envelope"
)

// What an agent can be asked, and by whom.

// role: the agent's manifest must have the role asked for (AINL-13). Only the
// legacy reading lets a request without one come this far.
func (q *question) role() envelope.Level {
	roles := q.manifest.RoleTypes
	if q.Role == "" || len(roles) == 0 {
		return nobody
	}
	if !slices.Contains(roles, q.Role) {
		q.object(envelope.RoleMismatch, "target_role", fmt.Sprintf("agent %q has no role %.80q, only %q", q.Agent, q.Role, roles))
	}
	return envelope.LevelDaemon
}

// taskType: an agent takes the types on its list, if it has one (AINL-35).
func (q *question) taskType() envelope.Level {
	types := q.agent.TaskTypes
	if len(types) == 0 {
		return nobody
	}
	if !matches(q.Type, types) && !slices.ContainsFunc(types, func(t string) bool { return strings.HasPrefix(t, q.Type+":") }) { // CLOWL-29
		q.object(envelope.UnsupportedTask, "task_type", fmt.Sprintf("agent %q does not take the type %.80q, only %q", q.Agent, q.Type, types))
	}
	return envelope.LevelDaemon
}

// environment: an agent works in the environments on its list, if it has one
// (AINL-52). A task that names none could mean any.
func (q *question) environment() envelope.Level {
	places := q.agent.Environments
	if len(places) == 0 {
		return nobody
	}
	switch {
	case q.Environment == "":
		q.object(envelope.PolicyViolation, "policy_context.environment", fmt.Sprintf("is missing, and agent %q works in %q only", q.Agent, places))
	case !slices.Contains(places, q.Environment):
		q.object(envelope.PolicyViolation, "policy_context.environment", fmt.Sprintf("agent %q does not work in %.80q, only in %q", q.Agent, q.Environment, places))
	}
	return envelope.LevelDaemon
}

// external is the trust domain of whoever names none.
const external = "external"

// trustDomain: the requester's domain must be trusted by the agent's (AINL-60).
// The requester's is that of the agent with its id; nobody proves the id.
func (q *question) trustDomain() envelope.Level {
	if len(q.rules.Trust) == 0 {
		return nobody
	}
	from, to := domainOr(q.rules.Domains[q.Requester]), domainOr(q.manifest.TrustDomain)
	for _, row := range q.rules.Trust {
		asks, _ := path.Match(row.From, from)
		asked, _ := path.Match(row.To, to)
		if !asks || !asked {
			continue
		}
		if !row.Allow {
			q.object(envelope.PolicyViolation, "requester_id", fmt.Sprintf("is of the trust domain %q, which may not ask agents of %q", from, to))
		}
		break
	}
	return envelope.LevelDaemon
}

func domainOr(domain string) string {
	if domain == "" {
		return external
	}
	return domain
}
