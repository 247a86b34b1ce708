package transcript

import (
	"cmp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// opencode reads an event of opencode's --format json. It prints no event for the end.
func (r *Reader) opencode(e *event) ([]Line, bool) {
	var part struct {
		Text  string `json:"text"`
		Tool  string `json:"tool"`
		Call  string `json:"callID"`
		State struct {
			Status string         `json:"status"`
			Input  jsontext.Value `json:"input"`
			Error  string         `json:"error"`
		} `json:"state"`
	}
	_ = json.Unmarshal(e.Part, &part, lenient) // what can't be read is empty
	switch e.Type {
	case "text", "reasoning":
		return r.say(part.Text), true
	case "tool_use":
		lines := r.use(part.Call, part.Tool, part.State.Input)
		if part.State.Status == "error" {
			lines = append(lines, r.fail(part.Tool, firstLine(part.State.Error))...)
		}
		return lines, true
	case "error":
		var failure struct {
			Name string `json:"name"`
			Data struct {
				Message string `json:"message"`
			} `json:"data"`
		}
		_ = json.Unmarshal(e.Error, &failure, lenient)
		return r.fail("the run", cmp.Or(failure.Data.Message, failure.Name, "it did not say why")), true
	case "step_start", "step_finish":
		return nil, true
	}
	return nil, false
}
