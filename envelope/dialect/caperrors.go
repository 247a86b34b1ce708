package dialect

import (
	"fmt"
	"strconv"
	"strings"

	"mailboxd/envelope"
)

// capFailure returns the failure of an error code and its text. The text may begin with the
// exact kind, "[budget_exceeded] ", because there are more kinds than codes.
func capFailure(code int, words string) envelope.Failure {
	f := envelope.Failure{Kind: capKind(code), Code: strconv.Itoa(code), Message: words}
	if inner, ok := strings.CutPrefix(words, "["); ok {
		word, rest, closed := strings.Cut(inner, "] ")
		if kind := envelope.Kind(word); closed && known(kind) {
			f.Kind, f.Message = kind, rest
		}
	}
	_, _, f.Retry = Code(f.Kind)
	return f
}

// capKind returns the kind of an error code: that of the table, else the meaning of the code's
// hundred in HTTP.
func capKind(code int) envelope.Kind {
	kind, ok := kindOfCAP(code)
	switch {
	case ok:
		return kind
	case code == 408:
		return envelope.Timeout
	case code >= 400 && code < 500:
		return envelope.InvalidEnvelope
	case code >= 500 && code < 600:
		return envelope.InternalError
	}
	return envelope.AgentError
}

// capCode returns the code and the text of a failure: its sender's own code in CAP, else that
// of the table, and the text with the exact kind before it.
func capCode(f envelope.Failure) (code int, words string) {
	_, code, _ = Code(f.Kind)
	if own, err := strconv.Atoi(f.Code); err == nil {
		code = own
	}
	return code, fmt.Sprintf("[%s] %s", f.Kind, f.Message)
}
