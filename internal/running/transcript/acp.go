package transcript

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// An acpUpdate is the update in a session/update of the Agent Client Protocol.
type acpUpdate struct {
	Kind    string         `json:"sessionUpdate"`
	Content jsontext.Value `json:"content"`
	Entries []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	} `json:"entries"`

	Call      string         `json:"toolCallId"` // and the next ones, of a call
	Title     string         `json:"title"`
	Tool      string         `json:"kind"`
	Status    string         `json:"status"`
	Input     jsontext.Value `json:"rawInput"`
	Output    jsontext.Value `json:"rawOutput"`
	Locations jsontext.Value `json:"locations"`
}

// sessionOf returns the session of an event of ACP.
func sessionOf(e *event) string {
	var params struct {
		Session string `json:"sessionId"`
	}
	_ = json.Unmarshal(e.Params, &params, lenient) // none then
	return cmp.Or(params.Session, e.Session)
}

// quietUpdates say nothing of the work.
var quietUpdates = map[string]bool{
	"agent_thought_chunk": true, "user_message_chunk": true, "usage_update": true, "available_commands_update": true,
	"current_mode_update": true, "config_option_update": true, "session_info_update": true,
}

// acp reads a line of the host of an agent that speaks ACP.
func (r *Reader) acp(e *event) ([]Line, bool) {
	if e.Method == "" && e.Type == "result" {
		return r.acpEnd(e), true
	}
	var params struct {
		Update acpUpdate `json:"update"`
	}
	if json.Unmarshal(e.Params, &params, lenient) != nil {
		return nil, false
	}
	switch u := params.Update; {
	case u.Kind == "agent_message_chunk":
		r.partial.WriteString(text(member(u.Content, "text")))
		if words := r.partial.String(); strings.HasSuffix(words, "\n\n") || len(words) > maxPartial {
			return r.flush(), true
		}
		return nil, true
	case u.Kind == "plan":
		return append(r.flush(), u.plan()...), true
	case u.Kind == "tool_call", u.Kind == "tool_call_update":
		return append(r.flush(), r.acpCall(u)...), true
	default:
		return nil, quietUpdates[u.Kind]
	}
}

// plan returns the steps that an agent plans, and which of them are done.
func (u acpUpdate) plan() []Line {
	marks := map[string]string{"completed": "[x] ", "in_progress": "[>] "}
	steps := []string{"plan:"}
	for _, step := range u.Entries {
		steps = append(steps, cmp.Or(marks[step.Status], "[ ] ")+firstLine(step.Content))
	}
	return []Line{{Notice, strings.Join(steps, "\n")}}
}

// acpCall shows a call when its input is known, its changes of files, and its failure.
func (r *Reader) acpCall(u acpUpdate) (lines []Line) {
	words := r.tools[u.Call]
	if what := strings.TrimSpace(u.Tool + " " + firstLine(u.Title)); u.Title != "" && len(r.tools) < maxTools {
		if before, _, _ := strings.Cut(words, " "); u.Tool == "" && before != "" {
			what = before + " " + what // an update may leave the kind out
		}
		words, r.tools[u.Call] = what, what
	}
	ended := u.Status == "completed" || u.Status == "failed"
	known := u.Status == "in_progress" || u.Kind == "tool_call_update" && len(u.Input) > len("{}")
	if !r.shown[u.Call] && (ended || known) {
		if r.shown == nil {
			r.shown = map[string]bool{}
		}
		r.shown[u.Call] = true
		lines = append(lines, Line{Tool, cmp.Or(words, "a tool")})
		lines = append(lines, u.diffs()...)
	}
	if u.Status == "failed" {
		why := cmp.Or(text(member(u.Output, "error")), u.contentText(), text(u.Output))
		lines = append(lines, r.fail(cmp.Or(words, "a tool"), firstLine(strings.Trim(why, "`\n ")))...)
	}
	return lines
}

// diffs returns the changes of files of a call.
func (u acpUpdate) diffs() (lines []Line) {
	var contents []Diff
	if json.Unmarshal(u.Content, &contents, lenient) != nil {
		return nil
	}
	for _, d := range contents {
		if d.Type == "diff" {
			lines = append(lines, Line{Raw, strings.TrimSuffix(d.Unified(), "\n")})
		}
	}
	return lines
}

// contentText returns the first text in the content of a call.
func (u acpUpdate) contentText() string {
	var contents []struct {
		Content jsontext.Value `json:"content"`
	}
	_ = json.Unmarshal(u.Content, &contents, lenient) // no text then
	for _, c := range contents {
		if words := text(member(c.Content, "text")); words != "" {
			return words
		}
	}
	return ""
}

// acpEnd reads the last line of the host.
func (r *Reader) acpEnd(e *event) []Line {
	lines := r.flush()
	if e.Status != "ok" {
		lines = append(lines, r.fail("the run", cmp.Or(failureWords(e), "it did not say why"))...)
	}
	var cost struct {
		Amount   jsontext.Value `json:"amount"`
		Currency string         `json:"currency"`
	}
	price := ""
	if json.Unmarshal(e.Payment, &cost, lenient) == nil && cost.Currency == "USD" {
		price = dollars(cost.Amount)
	}
	return append(lines, end(price, e.Tokens, 0, 0)...)
}

// member returns a member of an object; nil if there is none.
func member(object jsontext.Value, name string) jsontext.Value {
	var members map[string]jsontext.Value
	_ = json.Unmarshal(object, &members, lenient) // none then
	return members[name]
}
