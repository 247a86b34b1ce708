package transcript

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
)

// maxPartial limits the words that are kept until they are whole.
const maxPartial = 64 << 10

// gemini reads an event of Gemini CLI's stream-json. The model's words come in pieces.
func (r *Reader) gemini(e *event) ([]Line, bool) {
	switch e.Type {
	case "message":
		if e.Role != "assistant" {
			return r.flush(), true
		}
		r.partial.WriteString(text(e.Content))
		if words := r.partial.String(); strings.HasSuffix(words, "\n\n") || len(words) > maxPartial {
			return r.flush(), true
		}
		return nil, true
	case "init":
		return nil, true
	case "tool_use":
		return append(r.flush(), r.use(e.ToolID, e.ToolName, e.Parameters)...), true
	case "tool_result":
		if e.Status != "error" {
			return r.flush(), true
		}
		return append(r.flush(), r.fail(cmp.Or(r.tools[e.ToolID], "a tool"), firstLine(cmp.Or(failureWords(e), text(e.Output))))...), true
	case "error":
		if e.Severity == "warning" {
			return append(r.flush(), r.notice("warning: "+text(e.Message))...), true
		}
		return append(r.flush(), r.fail("a step", cmp.Or(text(e.Message), failureWords(e)))...), true
	case "result":
		lines := r.flush()
		if e.Status == "error" || e.Error != nil {
			lines = append(lines, r.fail("the run", cmp.Or(failureWords(e), "it did not say why"))...)
		}
		var stats struct {
			Tokens   int64   `json:"total_tokens"`
			Duration float64 `json:"duration_ms"`
		}
		_ = json.Unmarshal(e.Stats, &stats, lenient) // no numbers then
		return append(lines, end("", stats.Tokens, 0, milliseconds(stats.Duration))...), true
	}
	return nil, false
}

// failureWords returns the words of an event's error.
func failureWords(e *event) string {
	var failure struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	if len(e.Error) == 0 || json.Unmarshal(e.Error, &failure, lenient) != nil {
		return text(e.Error)
	}
	return cmp.Or(failure.Message, failure.Type)
}
