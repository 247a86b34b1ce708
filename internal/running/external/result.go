package external

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// A Result is the line that a host prints. What the service sent is in Answer, Text and the message
// of a failure, and nowhere else.
type Result struct {
	Type   string         `json:"type"`             // result
	Answer jsontext.Value `json:"answer,omitempty"` // the object that the service answered
	Text   string         `json:"text,omitempty"`   // or the text

	Question string `json:"question,omitempty"` // or what the agent asks a person

	Kind    envelope.Kind `json:"kind,omitempty"` // why there is no answer; "": there is one
	Message string        `json:"message,omitempty"`

	Status     int   `json:"http_status,omitzero"` // with which the service refused the request; 0: it didn't
	RetryAfter int64 `json:"retry_after,omitzero"` // seconds, after which it serves again; 0: it doesn't say
	Again      bool  `json:"again,omitzero"`       // another attempt may succeed

	open bool // the service may still answer this request: another attempt asks for that answer
}

// refuse returns the result of a run without an answer.
func refuse(kind envelope.Kind, format string, args ...any) Result {
	return Result{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// print prints the result. The request is closed after that, so that a host that dies before has
// lost an answer, and has never asked twice.
func (h *host) print(r Result) error {
	r.Type = "result"
	line, err := json.Marshal(r, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	point("answered")
	if _, err := h.Stdout.Write(append(h.redact(line), '\n')); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if out, ok := h.Stdout.(*os.File); ok {
		_ = out.Sync() // a pipe can't
	}
	point("printed")
	if r.open || h.record.Sent.IsZero() {
		return nil
	}
	h.record.Answered = true
	return h.record.write(h.Dir)
}

// shortestSecret is how long a token has to be to be taken out of what the service sends.
const shortestSecret = 6

// redact takes the token out of what the service sent.
func (h *host) redact(text []byte) []byte {
	if len(h.Bearer) < shortestSecret {
		return text
	}
	hidden := []byte("(" + h.Service.BearerEnv + ")")
	text = bytes.ReplaceAll(text, []byte(h.Bearer), hidden)
	if quoted, err := jsontext.AppendQuote(nil, h.Bearer); err == nil {
		text = bytes.ReplaceAll(text, quoted[1:len(quoted)-1], hidden)
	}
	return text
}

// longestRetry limits the time that a service asks to be left alone.
const longestRetry = 24 * time.Hour

// retryAfter reads the header Retry-After: seconds, or a time. It is 0 if there is none.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, int64(longestRetry/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, time.Until(at)), longestRetry)
	}
	return 0
}
