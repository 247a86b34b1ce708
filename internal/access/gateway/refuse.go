package gateway

import (
	"net/http"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/errordetails"
	"github.com/go-json-experiment/json"
)

// A refusal is the answer to a request that reaches no method of the protocol. Both bindings have it: the status
// of HTTP, and an error as the binding writes it.
type refusal struct {
	status int    // of HTTP
	name   string // as google.rpc.Code has it
	code   int    // of JSON-RPC
	err    error  // of the protocol
	words  string
}

// The refusals. Those of a request that needs more words get them by with.
var (
	noLogin   = refusal{http.StatusUnauthorized, "UNAUTHENTICATED", -31401, a2a.ErrUnauthenticated, "the request has no token of a sender"}
	forbidden = refusal{http.StatusForbidden, "PERMISSION_DENIED", -31403, a2a.ErrUnauthorized, ""}
	tooMany   = refusal{http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", -32000, a2a.ErrServerError, "too many requests; try again soon"}
	tooLarge  = refusal{http.StatusRequestEntityTooLarge, "INVALID_ARGUMENT", -32600, a2a.ErrInvalidRequest, "the request has more than 1 MiB"}
	unread    = refusal{http.StatusBadRequest, "INVALID_ARGUMENT", -32700, a2a.ErrParseError, "the request can't be read"}
	noRoute   = refusal{http.StatusNotFound, "UNIMPLEMENTED", -32601, a2a.ErrMethodNotFound, "nothing is at this path, or not for this method"}
	noTask    = refusal{http.StatusNotFound, "NOT_FOUND", -32001, a2a.ErrTaskNotFound, notFound.Message}
	isOver    = refusal{http.StatusBadRequest, "FAILED_PRECONDITION", -32004, a2a.ErrUnsupportedOperation, ""}
	down      = refusal{http.StatusServiceUnavailable, "UNAVAILABLE", -32000, a2a.ErrServerError, "mailboxd is not running; try again soon"}
)

// with returns the refusal with other words.
func (f refusal) with(words string) refusal {
	f.words = words
	return f
}

// refuse answers a request with a refusal.
func refuse(w http.ResponseWriter, r *http.Request, why refusal) {
	details := []*errordetails.Typed{errordetails.NewErrorInfo(a2a.ErrorReason(why.err), a2a.ProtocolDomain, nil)}
	answer := map[string]any{"error": map[string]any{"code": why.status, "status": why.name, "message": why.words, "details": details}}
	if r.URL.Path == "/" {
		answer = map[string]any{
			"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": why.code, "message": why.words, "data": details},
		}
	}
	text, err := json.Marshal(answer, json.Deterministic(true))
	if err != nil {
		text = nil // these values always encode
	}
	switch why.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(why.status)
	_, _ = w.Write(append(text, '\n')) // the client is gone, or not
}
