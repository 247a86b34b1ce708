// Package transcript reads what the programs of agents print as JSON events, and returns
// the text for people: the model's words, the tools it used, failures, cost and time. It
// knows Claude Code, Codex, Gemini CLI, opencode, Cursor, and the host of agents that speak ACP; agent/testdata/profiles names the sources
// of the formats. Nothing that it returns is safe for a terminal: it came from an agent.
package transcript

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Kind is what a Line is.
type Kind int

// The kinds.
const (
	Raw     Kind = iota // a line of the output that is no event; as it was printed
	Text                // words of the model; they may have several lines
	Tool                // a tool that is used, with its most telling argument
	Failure             // of a tool, or of the run
	End                 // of the run: cost and time
	Notice              // of the program: it tries its provider again, or warns
)

// A Line is a part of a transcript.
type Line struct {
	Kind Kind
	Text string
}

// A Session identifies the conversation of a program, which the program can continue.
type Session struct {
	Program string // claude, codex, gemini, opencode, cursor or acp; "" for an output of another kind
	ID      string
}

// A Reader reads the events of one run, a line at a time. The zero value is ready. It takes
// no line for an event before the first event of a known program, so the output of any other
// agent is Raw.
type Reader struct {
	session Session
	cwd     string            // of the program; paths below it are shown without it
	tools   map[string]string // the names of tools by the ids of their uses
	partial strings.Builder   // words of the model that come in pieces
	last    string            // the last words or failure, which an end repeats
	shown   map[string]bool   // the calls that were shown, of ACP
	problem string            // of Codex, which may be the failure of its run; "" for none
	hidden  int               // events that aren't known
}

// Hidden returns how many events of the program were not shown, since they aren't known.
func (r *Reader) Hidden() int { return r.hidden }

// Session returns the session, as far as it is known.
func (r *Reader) Session() Session { return r.session }

// maxTools limits how many uses of tools are remembered.
const maxTools = 10_000

var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// An event has the members of all programs' events that matter here.
type event struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Session string `json:"session_id"`
	Cwd     string `json:"cwd"`

	Attempt     int            `json:"attempt"` // of api_retry of Claude Code, and the next three
	MaxRetries  int            `json:"max_retries"`
	RetryDelay  float64        `json:"retry_delay_ms"`
	ErrorStatus jsontext.Value `json:"error_status"`
	Severity    string         `json:"severity"` // of an error of Gemini CLI

	Tools    jsontext.Value `json:"tools"`     // of Claude Code's first event
	Message  jsontext.Value `json:"message"`   // claude, cursor: an object; codex, gemini: words
	ToolCall jsontext.Value `json:"tool_call"` // cursor
	Thread   string         `json:"thread_id"` // codex, and the next two
	Item     jsontext.Value `json:"item"`
	Error    jsontext.Value `json:"error"`
	Usage    jsontext.Value `json:"usage"`

	Role       string         `json:"role"` // gemini, and the next ones
	Content    jsontext.Value `json:"content"`
	ToolName   string         `json:"tool_name"`
	ToolID     string         `json:"tool_id"`
	Parameters jsontext.Value `json:"parameters"`
	Status     string         `json:"status"`
	Output     jsontext.Value `json:"output"`
	Stats      jsontext.Value `json:"stats"`

	SessionID string         `json:"sessionID"` // opencode, as Part
	Part      jsontext.Value `json:"part"`

	Method  string         `json:"method"` // acp, as Params, and the next ones of its end
	Params  jsontext.Value `json:"params"`
	Stop    *string        `json:"stop_reason"`
	Tokens  int64          `json:"tokens"`
	Payment jsontext.Value `json:"cost"`

	IsError  *bool          `json:"is_error"` // of the end of claude and cursor, and the next ones
	Result   string         `json:"result"`
	Errors   []string       `json:"errors"`
	Duration float64        `json:"duration_ms"`
	Turns    int            `json:"num_turns"`
	Cost     jsontext.Value `json:"total_cost_usd"`
}

// Read returns the parts of a transcript for one line of the output, without its line break.
func (r *Reader) Read(line []byte) []Line {
	raw := []Line{{Raw, string(line)}}
	if !bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) {
		return append(r.flush(), raw...)
	}
	var e event
	if json.Unmarshal(line, &e, lenient) != nil {
		return append(r.flush(), raw...)
	}
	if r.session.Program == "" && !r.begins(&e) {
		if e.Type == "system" && e.Subtype != "" && e.Session != "" {
			return nil // of Claude Code, before its first one
		}
		return append(r.flush(), raw...)
	}
	if r.tools == nil {
		r.tools = map[string]string{}
	}
	var lines []Line
	known := true
	switch r.session.Program {
	case "codex":
		lines, known = r.codex(&e)
	case "gemini":
		lines, known = r.gemini(&e)
	case "opencode":
		lines, known = r.opencode(&e)
	case "acp":
		lines, known = r.acp(&e)
	default:
		lines, known = r.claude(&e)
	}
	if !known {
		r.hidden++
	}
	return lines
}

// Rest returns the words that have come so far in pieces, for the end of the output.
func (r *Reader) Rest() []Line { return append(r.warnOfProblem(), r.flush()...) }

// begins reports whether an event is the first one of a known program.
func (r *Reader) begins(e *event) bool {
	switch {
	case e.Type == "system" && e.Subtype == "init" && e.Session != "":
		r.session = Session{"cursor", e.Session}
		if e.Tools != nil {
			r.session.Program = "claude"
		}
	case e.Type == "result" && e.Subtype != "" && e.IsError != nil && e.Session != "": // the only event of output json
		r.session = Session{"cursor", e.Session}
		if e.Cost != nil {
			r.session.Program = "claude"
		}
	case e.Type == "thread.started" && e.Thread != "":
		r.session = Session{"codex", e.Thread}
	case e.SessionID != "" && (e.Part != nil || e.Type == "error"):
		r.session = Session{"opencode", e.SessionID}
	case e.Type == "init" && e.Session != "":
		r.session = Session{"gemini", e.Session}
	case e.Method == "session/update", e.Type == "result" && e.Stop != nil && e.Subtype == "":
		r.session = Session{"acp", sessionOf(e)}
	default:
		return false
	}
	r.cwd = e.Cwd
	return true
}

// say returns words of the model.
func (r *Reader) say(words string) []Line {
	words = strings.TrimSpace(words)
	if words == "" {
		return nil
	}
	r.last = words
	return []Line{{Text, words}}
}

func (r *Reader) flush() []Line {
	words := r.partial.String()
	r.partial.Reset()
	return r.say(words)
}

// use returns the use of a tool.
func (r *Reader) use(id, name string, arguments jsontext.Value) []Line {
	if id != "" && len(r.tools) < maxTools {
		r.tools[id] = name
	}
	return []Line{{Tool, strings.TrimSpace(name + " " + r.argument(arguments))}}
}

// fail returns the failure of a tool or of the run, once.
func (r *Reader) fail(what, why string) []Line {
	words := strings.TrimSpace(Plain(why))
	if words == r.last && words != "" {
		return nil
	}
	r.last = words
	return []Line{{Failure, strings.TrimSpace(what + " failed: " + words)}}
}

// notice returns a sentence of the program, once.
func (r *Reader) notice(words string) []Line {
	words = strings.TrimSpace(Plain(words))
	if words == "" || words == r.last {
		return nil
	}
	r.last = words
	return []Line{{Notice, words}}
}

// A price and the lengths of a run make its end.
func end(cents string, tokens, turns int64, took time.Duration) []Line {
	var parts []string
	if took > 0 {
		parts = append(parts, took.Round(100*time.Millisecond).String())
	}
	if turns > 0 {
		parts = append(parts, count(turns, "turn"))
	}
	if tokens > 0 {
		parts = append(parts, count(tokens, "token"))
	}
	if cents != "" {
		parts = append(parts, cents)
	}
	if len(parts) == 0 {
		return nil
	}
	return []Line{{End, strings.Join(parts, ", ")}}
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
