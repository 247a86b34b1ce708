package policy

import (
	"fmt"

	"mailboxd/envelope"
)

// What a task gives its agent to read, and wants back.

// contextSize: the input must fit the agent (AINL-20). It counts as it stands
// in the request; what it refers to is not part of it.
func (q *question) contextSize() envelope.Level {
	most := q.manifest.MaxContextSize
	if most == 0 {
		return nobody
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

// refs: what files a task names is looked at where the files are, not here
// (AINL-40).
func (q *question) refs() envelope.Level {
	if len(q.Refs) == 0 {
		return nobody
	}
	return envelope.LevelDaemon
}

// builtInSchema is the one schema that needs no file (AINL-42).
const builtInSchema = "schema://ainl/agent-output/v1"

// outputContract: the answer is held to its contract after the run. A schema
// that nobody here knows cannot be held to, and is only worth a warning
// (AINL-42).
func (q *question) outputContract() envelope.Level {
	if q.Contract == nil {
		return nobody
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

// sensitivity: an agent sees what is as sensitive as it may see (AINL-44).
func (q *question) sensitivity() envelope.Level {
	if most := q.agent.MaxSensitivity; q.Sensitivity > most {
		q.object(envelope.PolicyViolation, "sensitivity", fmt.Sprintf("is %s, and agent %q may see at most what is %s", q.Sensitivity, q.Agent, most))
	}
	return envelope.LevelDaemon
}

// locality: what is confidential stays on this machine (AINL-19). We know
// where an agent thinks from its manifest alone.
func (q *question) locality() envelope.Level {
	if q.Sensitivity < envelope.Confidential {
		return nobody
	}
	switch q.manifest.Locality {
	case envelope.Remote:
		q.object(envelope.PolicyViolation, "sensitivity", fmt.Sprintf("is %s, and agent %q is remote", q.Sensitivity, q.Agent))
	case "":
		return envelope.LevelAdvisory
	}
	return envelope.LevelDaemon
}
