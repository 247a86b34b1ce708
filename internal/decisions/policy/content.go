package policy

import (
	"cmp"
	"fmt"

	"mailboxd/envelope"
)

// Controls on the input and the output.

// nearMisses: a misspelt control would have no effect. The reader of the request has found the
// probable ones.
func (q *question) nearMisses() envelope.Level {
	if len(q.NearMisses) == 0 {
		return notApplicable
	}
	for _, f := range q.NearMisses {
		q.object(f.Kind, f.Field, f.Message)
	}
	return envelope.LevelDaemon
}

// contextSize: the input must fit the agent (AINL-20). Only the text in the request counts,
// not the files that it refers to.
func (q *question) contextSize() envelope.Level {
	most := q.manifest.MaxContextSize
	if most == 0 {
		return notApplicable
	}
	divisor := int64(q.rules.ContextDivisor)
	if divisor <= 0 {
		divisor = 4
	}
	size := int64(len(q.Input))
	if tokens := (size + divisor - 1) / divisor; tokens > most {
		q.object(envelope.ContextTooLarge, "input",
			fmt.Sprintf("is about %d tokens (%d bytes), and agent %q takes %d", tokens, size, q.Agent, most))
	}
	return envelope.LevelDaemon
}

// refs: intake checks the referenced files where they are (AINL-40).
func (q *question) refs() envelope.Level {
	if len(q.Refs) == 0 {
		return notApplicable
	}
	if q.agent.NoFiles {
		q.object(envelope.UnsupportedTask, "input.refs", fmt.Sprintf("agent %q is a worker in a sandbox, which cannot see the files of a task; put the content into input.payload", q.Agent))
	}
	if q.agent.NoDir && len(envelope.ArtifactsOf(q.Refs)) > 0 {
		q.object(envelope.UnsupportedTask, "input.refs", fmt.Sprintf(
			"agent %q is a worker without a run directory, where artifacts are copied to; put the content into input.payload", q.Agent))
	}
	return envelope.LevelDaemon
}

// builtInSchema is the schema that needs no file (AINL-42).
const builtInSchema = "schema://ainl/agent-output/v1"

// outputContract: the answer is checked against its contract after the run. An unknown
// schema can't be checked and only gives a warning (AINL-42).
func (q *question) outputContract() envelope.Level {
	if unknown := q.rules.UnknownStep; unknown != nil {
		switch field, why := unknown(q.Task); {
		case why == "":
		case q.Clutch == nil:
			q.warn(field, why)
		default:
			q.object(envelope.InvalidEnvelope, field, why)
		}
	}
	if unknown := q.rules.UnknownVersion; unknown != nil && q.Clutch != nil {
		if why := unknown(q.Clutch.SchemaRef); why != "" {
			q.object(envelope.InvalidEnvelope, "schema_ref", why)
		}
	}
	if q.Contract == nil {
		return notApplicable
	}
	known := q.rules.KnowsSchema
	if known == nil {
		known = func(ref string) bool { return ref == builtInSchema }
	}
	if ref := q.Contract.SchemaRef; ref != "" && !known(ref) {
		q.warn("required_output_contract.schema_ref", fmt.Sprintf("%.250q is not known here, so the output is not checked against it", ref))
		return envelope.LevelAdvisory
	}
	return envelope.LevelDaemon
}

// sensitivity: a task must not be more sensitive than its agent may see (AINL-44).
func (q *question) sensitivity() envelope.Level {
	if most := q.agent.MaxSensitivity; q.Sensitivity > most {
		q.object(envelope.PolicyViolation, q.sensitiveField(),
			fmt.Sprintf("is %s, and agent %q may see at most what is %s", q.Sensitivity, q.Agent, most))
	}
	return envelope.LevelDaemon
}

// sensitiveField returns the field that a task has its sensitivity from.
func (q *question) sensitiveField() string { return cmp.Or(q.SensitiveBy, "sensitivity") }

// locality: confidential content stays on this machine (AINL-19). Only the agent's manifest
// says where its model runs.
func (q *question) locality() envelope.Level {
	if q.Sensitivity < envelope.Confidential {
		return notApplicable
	}
	switch q.manifest.Locality {
	case envelope.Remote:
		q.object(envelope.PolicyViolation, q.sensitiveField(), fmt.Sprintf("is %s, and agent %q is remote", q.Sensitivity, q.Agent))
	case "":
		return envelope.LevelAdvisory
	}
	return envelope.LevelDaemon
}
