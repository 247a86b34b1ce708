package dialect

import "mailboxd/envelope"

// A code has the codes of an error in the dialects (mapping 2.4). A bare code means the first
// kind of the first row that has it.
type code struct {
	clowl string
	cap   int

	clutch string
	retry  bool // a corrected or later message may succeed: CLOWL-34
	kinds  []envelope.Kind
}

// table is the only list of error codes. The codes and their retry flags are those of CLowl
// v0.2.
var table = []code{
	{"E001", 400, "INVALID_MESSAGE", true, []envelope.Kind{envelope.InvalidEnvelope, envelope.InvalidJSON}},
	{"E002", 401, "UNAUTHORIZED", false, []envelope.Kind{envelope.Unauthorized}},
	{"E003", 404, "CONTEXT_UNAVAILABLE", true, []envelope.Kind{envelope.ContextUnavailable, envelope.ContextIntegrity, envelope.SessionUnavailable}},
	{"E004", 429, "CAPACITY", true, []envelope.Kind{envelope.Capacity}},
	{"E005", 501, "UNSUPPORTED_TASK", false, []envelope.Kind{envelope.UnsupportedTask, envelope.RoleMismatch}},
	{"E006", 504, "TIMEOUT", true, []envelope.Kind{
		envelope.Timeout, envelope.IdleTimeout, envelope.ExitTimeout, envelope.DeadlineExceeded,
		envelope.ChangeWindowMissed, envelope.ApprovalExpired, envelope.OversightExpired,
	}},
	{"E007", 424, "DEPENDENCY_FAILED", true, []envelope.Kind{envelope.DependencyFailed}},
	{"E008", 422, "VALIDATION_FAILED", true, []envelope.Kind{envelope.ValidationFailed, envelope.ContractViolation, envelope.ContextTooLarge}},
	{"E009", 500, "INTERNAL", true, []envelope.Kind{
		envelope.InternalError, envelope.AgentError, envelope.AgentCrashed, envelope.SpawnFailed, envelope.SandboxUnavailable, envelope.RunLost,
		envelope.OutputInvalid, envelope.OutputTooLarge, envelope.OutOfMemory, envelope.IdentityMismatch,
		envelope.AgentProtocol, envelope.AgentUnsuitable,
	}},
	{"E010", 421, "NO_AGENT", false, []envelope.Kind{envelope.NoCapableAgent, envelope.UnknownAgent}},
	{"E011", 409, "CONFLICT", true, []envelope.Kind{envelope.DuplicateConflict}},
	{"E012", 402, "BUDGET_EXCEEDED", false, []envelope.Kind{envelope.BudgetExceeded}},
	{"E013", 499, "CANCELLED", false, []envelope.Kind{envelope.Cancelled}},
	{"E014", 505, "UNSUPPORTED_VERSION", false, []envelope.Kind{envelope.UnsupportedVersion}},
	{"E015", 508, "DELEGATION_CYCLE", false, []envelope.Kind{envelope.DelegationCycle}},
	{"E016", 403, "SECURITY_VIOLATION", false, []envelope.Kind{envelope.SecurityViolation, envelope.PolicyViolation, envelope.ToolViolation, envelope.OversightRejected}},
	{"E002", 403, "UNAUTHORIZED", false, []envelope.Kind{envelope.DelegationDenied, envelope.ApprovalDenied}},
}

// byKind has the code of each kind.
var byKind = func() map[envelope.Kind]code {
	found := map[envelope.Kind]code{}
	for _, c := range table {
		for _, kind := range c.kinds {
			found[kind] = c
		}
	}
	return found
}()

// Code returns the codes of a kind of error in CLowl and in CAP, and whether a corrected or
// later message may succeed. An unknown kind is an internal error.
func Code(kind envelope.Kind) (clowl string, cap int, retry bool) {
	c, ok := byKind[kind]
	if !ok {
		c = byKind[envelope.InternalError]
	}
	return c.clowl, c.cap, c.retry
}

// FailureOf returns the failure of a kind, with its message and its retry flag.
func FailureOf(kind envelope.Kind, message string) envelope.Failure {
	_, _, retry := Code(kind)
	return envelope.Failure{Kind: kind, Message: message, Retry: retry}
}

// known reports whether mailboxd has the kind.
func known(kind envelope.Kind) bool {
	_, ok := byKind[kind]
	return ok
}

// kindOfCLowl returns the kind of a bare code of CLowl. Codes of the transport, of coordination
// and of no range are internal errors; those of applications are errors of the agent
// (CLOWL-34).
func kindOfCLowl(said string) envelope.Kind {
	for _, c := range table {
		if c.clowl == said {
			return c.kinds[0]
		}
	}
	if len(said) == 4 && said[:2] == "E9" {
		return envelope.AgentError
	}
	return envelope.InternalError
}

// kindOfCAP returns the kind of a bare code of CAP, and whether the table has it.
func kindOfCAP(said int) (kind envelope.Kind, ok bool) {
	for _, c := range table {
		if c.cap == said {
			return c.kinds[0], true
		}
	}
	return "", false
}
