package transcript

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// claude reads an event of Claude Code's stream-json, or of Cursor's, which has the same form
// except for tools.
func (r *Reader) claude(e *event) ([]Line, bool) {
	switch e.Type {
	case "system":
		if e.Subtype == "api_retry" {
			return claudeRetry(e), true
		}
		return nil, true
	case "rate_limit_event", "stream_event", "thinking":
		return nil, true
	case "assistant", "user":
		return r.claudeBlocks(e), true
	case "tool_call":
		return r.cursorTool(e), true
	case "result":
		return r.claudeEnd(e), true
	}
	return nil, false
}

// claudeBlocks reads the words, the tools and the failures of tools in a message.
func (r *Reader) claudeBlocks(e *event) (lines []Line) {
	var message struct {
		Content []struct {
			Type    string         `json:"type"`
			Text    string         `json:"text"`
			ID      string         `json:"id"`
			Name    string         `json:"name"`
			Input   jsontext.Value `json:"input"`
			Use     string         `json:"tool_use_id"`
			Content jsontext.Value `json:"content"`
			IsError bool           `json:"is_error"`
		} `json:"content"`
	}
	if json.Unmarshal(e.Message, &message, lenient) != nil {
		return nil
	}
	for _, b := range message.Content {
		switch {
		case b.Type == "text" && e.Type == "assistant":
			lines = append(lines, r.say(b.Text)...)
		case b.Type == "tool_use":
			lines = append(lines, r.use(b.ID, b.Name, b.Input)...)
		case b.Type == "tool_result" && b.IsError:
			why := strings.NewReplacer("<tool_use_error>", "", "</tool_use_error>", "").Replace(text(b.Content))
			lines = append(lines, r.fail(cmp.Or(r.tools[b.Use], "a tool"), firstLine(why))...)
		}
	}
	return lines
}

// cursorTool reads a tool of Cursor: {"readToolCall": {"args": {...}, "result": {...}}}.
func (r *Reader) cursorTool(e *event) []Line {
	var calls map[string]struct {
		Args   jsontext.Value            `json:"args"`
		Result map[string]jsontext.Value `json:"result"`
	}
	if json.Unmarshal(e.ToolCall, &calls, lenient) != nil {
		return nil
	}
	for name, call := range calls {
		name = strings.TrimSuffix(name, "ToolCall")
		switch {
		case e.Subtype == "started":
			return r.use("", name, call.Args)
		case call.Result["error"] != nil:
			return r.fail(name, r.short(text(call.Result["error"])))
		case call.Result["rejected"] != nil:
			return r.fail(name, "rejected "+r.short(text(call.Result["rejected"])))
		}
	}
	return nil
}

func (r *Reader) claudeEnd(e *event) (lines []Line) {
	failed := e.IsError != nil && *e.IsError || e.Subtype != "success"
	switch {
	case failed && strings.TrimSpace(e.Result) != r.last || len(e.Errors) > 0:
		lines = r.fail("the run", cmp.Or(append(e.Errors, e.Result, e.Subtype)...))
	case !failed && strings.TrimSpace(e.Result) != r.last:
		lines = r.say(e.Result)
	}
	var usage map[string]jsontext.Value
	_ = json.Unmarshal(e.Usage, &usage, lenient) // no tokens then
	tokens := int64(0)
	for _, name := range []string{
		"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens",
		"inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens",
	} {
		n, _ := strconv.ParseInt(string(usage[name]), 10, 32)
		tokens += max(n, 0)
	}
	return append(lines, end(dollars(e.Cost), tokens, int64(e.Turns), milliseconds(e.Duration))...)
}

// dollars returns a price in whole cents, rounded up as in results; "" for none.
func dollars(price jsontext.Value) string {
	n, err := strconv.ParseFloat(string(price), 64)
	if err != nil || n <= 0 || n > 1e9 {
		return ""
	}
	return "$" + strconv.FormatFloat(math.Ceil(n*100-1e-6)/100, 'f', 2, 64)
}

func milliseconds(n float64) time.Duration {
	if !(n > 0 && n < 1e12) {
		return 0
	}
	return time.Duration(n * float64(time.Millisecond))
}
