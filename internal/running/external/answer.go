package external

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// maxDecoded is the size of the largest answer that becomes a result, in bytes: that of a program's.
const maxDecoded = 4<<20 - 64<<10

// bodyFile has an answer that is too large for a result.
const bodyFile = "answer.body"

// read reads the answer of a service that has done its work.
func (h *host) read(w *watched, resp *http.Response) Result {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		if h.Service.Mode != task.ServiceStream {
			return refuse(envelope.AgentProtocol, "the service answered with a stream of events; set http.mode: stream")
		}
		return h.stream(w, resp.Body)
	}
	body, err := io.ReadAll(w.reader(resp.Body))
	if err != nil {
		return h.broken(w, err, true)
	}
	return h.answer(body)
}

// answer checks that a service answered with an object. The rest is checked as the answer of any agent.
func (h *host) answer(body []byte) Result {
	object := jsontext.Value(bytes.TrimSpace(body))
	switch {
	case len(body) > maxDecoded:
		if err := os.WriteFile(filepath.Join(h.Dir, bodyFile), h.redact(body), 0o600); err != nil {
			return refuse(envelope.InternalError, "write the answer: %v", err)
		}
		return refuse(envelope.OutputTooLarge,
			"the answer of %d bytes is too large for a result; it is in %s of the run directory", len(body), bodyFile)
	case object.Kind() != '{' || !object.IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)):
		return refuse(envelope.OutputInvalid, "the service did not answer with a JSON object%s", quoteStart(body))
	}
	return Result{Answer: object}
}

// quoteStart quotes the beginning of a text; "" for an empty one.
func quoteStart(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	return fmt.Sprintf(": %q", text[:min(len(text), maxWords)])
}
