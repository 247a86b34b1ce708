package dialect

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// again are the kinds of errors after which the same message may succeed later (mapping 2.4).
var again = []envelope.Kind{
	envelope.Capacity, envelope.Timeout, envelope.IdleTimeout, envelope.ExitTimeout, envelope.ApprovalExpired, envelope.OversightExpired,
	envelope.InternalError, envelope.AgentError, envelope.AgentCrashed, envelope.RunLost, envelope.OutputInvalid, envelope.OutputTooLarge, envelope.OutOfMemory,
}

// ClutchCode returns the code of a kind of error in Clutch, and whether the same message may
// succeed later (CLUTCH-83). An unknown kind is an internal error.
func ClutchCode(kind envelope.Kind) (code string, retryable bool) {
	c, ok := byKind[kind]
	if !ok {
		c = byKind[envelope.InternalError]
	}
	return c.clutch, slices.Contains(again, kind)
}

// foreignCodes are the codes of other programs that mailboxd reads.
var foreignCodes = map[string]envelope.Kind{
	"RATE_LIMITED": envelope.Capacity, "TOOL_UNAVAILABLE": envelope.DependencyFailed, "ESCALATED": envelope.OversightExpired,
	"AGENT_NOT_FOUND": envelope.NoCapableAgent, "NO_RUNTIME": envelope.NoCapableAgent,
	"SUBPROCESS_ERROR": envelope.AgentError, "SPAWN_ERROR": envelope.AgentError, "PARSE_ERROR": envelope.AgentError,
	"EXECUTION_ERROR": envelope.AgentError, "HTTP_ERROR": envelope.AgentError, "AGENT_ERROR": envelope.AgentError, "WORKER_ERROR": envelope.AgentError,
}

// kindOfClutch returns the kind of a bare code of Clutch.
func kindOfClutch(said string) (kind envelope.Kind, ok bool) {
	for _, c := range table {
		if c.clutch == said {
			return c.kinds[0], true
		}
	}
	kind, ok = foreignCodes[said]
	return kind, ok
}

// failure reads the payload of an error: code, message, retryable, and the exact kind in
// details. An unknown code is an internal error, and the failure keeps it.
func (r *clutchReading) failure(otherwise envelope.Kind) envelope.Failure {
	code := r.word("code")
	kind, ok := kindOfClutch(code)
	switch {
	case code == "":
		kind, ok = otherwise, true
		code, _ = ClutchCode(kind)
	case !ok:
		kind = envelope.InternalError
	}
	details := membersOf(r.payload.members["details"])
	if exact, _ := textOf(details["kind"]); known(envelope.Kind(exact)) {
		if own, _ := ClutchCode(envelope.Kind(exact)); own == code || !ok {
			kind = envelope.Kind(exact)
			if foreign, _ := textOf(details["code"]); foreign != "" {
				code = foreign
			}
		}
	}
	f := envelope.Failure{Kind: kind, Code: code, Message: r.said("message", "error", "reason")}
	_, _, f.Retry = Code(kind)
	return f
}

// failed returns the answer of a failure. Its sender may set in retryable whether the same
// message may succeed later, whatever the kind (CLUTCH-53).
func (r *clutchReading) failed(f envelope.Failure) envelope.Result {
	a := envelope.Result{Status: envelope.Failed, Error: envelope.Error{Kind: f.Kind, Message: f.Message}}
	own, same := ClutchCode(f.Kind)
	switch retryable := r.payload.members["retryable"]; retryable.Kind() {
	case 't', 'f':
		a.Error.Final, a.Error.Again = same && retryable.Kind() == 'f', !same && retryable.Kind() == 't'
	case 0, 'n':
	default:
		r.note("", "payload.retryable", "must be true or false, read as what the code says")
	}
	if f.Code != own {
		a.Error.Code = f.Code
	}
	if f.Kind == envelope.Cancelled {
		a.Status = envelope.Stopped
	}
	a.Output.Summary = f.Message
	if kept := keptPart(r.part, r.ownDetails(f)); kept != nil {
		a.Extra = object(map[string]jsontext.Value{keptClutch: kept})
	}
	return a
}

// ownDetails returns the details of a failure without the members that Kind and Code repeat.
func (r *clutchReading) ownDetails(f envelope.Failure) map[string]jsontext.Value {
	details := maps.Clone(membersOf(r.payload.members["details"]))
	for name, said := range map[string]string{"kind": string(f.Kind), "code": f.Code} {
		if text, _ := textOf(details[name]); text == said {
			delete(details, name)
		}
	}
	return details
}

// ClutchCodeOf returns the code of a failure in Clutch, and whether the same message may
// succeed later. It is the agent's own code, unless that is one of another dialect or of
// another kind.
func ClutchCodeOf(f envelope.Failure) (code string, retryable bool) {
	code, retryable = ClutchCode(f.Kind)
	kind, known := kindOfClutch(f.Code)
	if known && byKind[kind].clutch == code || !known && isOwnCode(f.Code) {
		code = f.Code
	}
	return code, retryable
}

// isOwnCode reports whether an unknown code is one that every reader of Clutch accepts: capital
// letters and underscores. Those of CLowl and CAP are numbers, with or without an E.
func isOwnCode(code string) bool {
	return code != "" && strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// word returns a member of the payload that is a text; "" for none.
func (r *clutchReading) word(name string) string {
	text, _ := textOf(r.payload.members[name])
	return text
}
