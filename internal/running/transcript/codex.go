package transcript

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A codexItem is a step of Codex.
type codexItem struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Text     string         `json:"text"`
	Message  string         `json:"message"`
	Command  string         `json:"command"`
	Output   string         `json:"aggregated_output"`
	ExitCode *int           `json:"exit_code"`
	Status   string         `json:"status"`
	Server   string         `json:"server"`
	Tool     string         `json:"tool"`
	Args     jsontext.Value `json:"arguments"`
	Query    string         `json:"query"`
	Changes  []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	} `json:"changes"`
}

// codex reads an event of codex exec --json.
func (r *Reader) codex(e *event) ([]Line, bool) {
	if e.Type == "turn.failed" {
		r.problem = "" // it is said again
	}
	before := r.warnOfProblem()
	if e.Type != "error" {
		lines, known := r.codexEvent(e)
		return append(before, lines...), known
	}
	if lines, again := codexRetry(text(e.Message)); again {
		return append(before, r.notice(lines[0].Text)...), true
	}
	r.problem = text(e.Message) // until the next event says whether it ended the run
	return before, true
}

// warnOfProblem returns a problem that was not the failure of the run.
func (r *Reader) warnOfProblem() []Line {
	words := r.problem
	r.problem = ""
	if words == "" {
		return nil
	}
	return r.notice("warning: " + words)
}

func (r *Reader) codexEvent(e *event) ([]Line, bool) {
	switch e.Type {
	case "thread.started", "turn.started", "item.updated":
		return nil, true
	case "item.started", "item.completed":
		var item codexItem
		if json.Unmarshal(e.Item, &item, lenient) != nil {
			return nil, false
		}
		return r.codexItem(&item, e.Type == "item.completed"), true
	case "turn.failed":
		var failure struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(e.Error, &failure, lenient) // without words then
		return r.fail("the run", failure.Message), true
	case "turn.completed":
		var usage struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
		}
		_ = json.Unmarshal(e.Usage, &usage, lenient) // no tokens then
		return end("", max(usage.Input, 0)+max(usage.Output, 0), 0, 0), true
	}
	return nil, false
}

func (r *Reader) codexItem(item *codexItem, completed bool) (lines []Line) {
	name, argument := "", ""
	switch item.Type {
	case "agent_message":
		if completed {
			return r.say(item.Text)
		}
	case "command_execution":
		name, argument = "Bash", shellCommand(item.Command)
	case "file_change":
		var paths []string
		for _, c := range item.Changes {
			paths = append(paths, strings.TrimSpace(c.Kind+" "+c.Path))
		}
		name, argument = "Edit", strings.Join(paths, ", ")
	case "mcp_tool_call":
		name, argument = item.Server+"."+item.Tool, r.argument(item.Args)
	case "web_search":
		name, argument = "Search", item.Query
	case "error":
		return r.notice("warning: " + item.Message)
	}
	if name == "" {
		return nil
	}
	if r.tools[item.ID] == "" {
		lines = r.use(item.ID, name, nil)
		lines[0].Text = strings.TrimSpace(name + " " + r.short(argument))
	}
	switch {
	case item.ExitCode != nil && *item.ExitCode != 0:
		lines = append(lines, Line{Failure, strings.TrimSpace(fmt.Sprintf("%s failed: exit %d: %s", name, *item.ExitCode, lastLine(item.Output)))})
	case completed && (item.Status == "failed" || item.Status == "declined"):
		lines = append(lines, r.fail(name, cmp.Or(item.Message, item.Status))...)
	}
	return lines
}

// shellCommand returns a command without the shell that runs it.
func shellCommand(command string) string {
	for _, shell := range []string{"/usr/bin/bash -lc ", "/bin/bash -lc ", "bash -lc ", "/bin/sh -c ", "sh -c "} {
		if rest, ok := strings.CutPrefix(command, shell); ok {
			if n := len(rest); n > 1 && (rest[0] == '\'' || rest[0] == '"') && rest[n-1] == rest[0] {
				rest = rest[1 : n-1]
			}
			return rest
		}
	}
	return command
}
