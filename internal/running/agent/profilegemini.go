package agent

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/decisions/task"
)

// geminiRecipe runs Gemini CLI, version 0.61.0, which reads the prompt from a standard input that
// isn't a terminal. It refuses to work in an untrusted directory, and a run directory is always
// new. It has no flag for a budget.
var geminiRecipe = recipe{
	title:      "Gemini CLI",
	command:    []string{"gemini", "--output-format", "stream-json", "--skip-trust"},
	model:      "--model",
	stdin:      Prompt,
	output:     Gemini,
	permission: geminiPermission,
	terms:      geminiTerms,
	rules:      geminiRules,

	tools: geminiTools,

	tested: "0.61.0",
	events: []string{"init", "message", "tool_use", "tool_result", "error", "result"}, // https://geminicli.com/docs/cli/headless
	login: &login{ // https://geminicli.com/docs/get-started/authentication
		variables: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_APPLICATION_CREDENTIALS"},
		files:     []loginFile{{below: ".gemini", name: "oauth_creds.json"}, {below: ".gemini", name: ".env", words: "_API_KEY="}},
		command:   "run gemini, then type /auth", key: "GEMINI_API_KEY",
	},

	others: []string{"save_memory", "write_todos", "activate_skill", "ask_user", "enter_plan_mode", "exit_plan_mode", "invoke_agent", "update_topic"},

	// https://geminicli.com/docs/get-started/authentication, and the variables of the library that it
	// calls: https://github.com/googleapis/js-genai
	variables: []string{
		"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
		"GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_APPLICATION_CREDENTIALS",
	},
}

// geminiTools are those of https://geminicli.com/docs/reference/tools.
var geminiTools = toolGroups{
	ReadTools: {"read_file", "read_many_files", "list_directory", "glob", "grep_search"}, EditTools: {"write_file", "replace"},
	CommandTools: {"run_shell_command"}, WebTools: {"web_fetch", "google_web_search"},
}

// geminiPermission sets the approval mode: https://geminicli.com/docs/cli/cli-reference.
// auto_edit accepts edits in the working directory, and yolo everything.
func geminiPermission(g grant) []string {
	switch {
	case g.permission != Edit:
		return nil
	case g.commands:
		return []string{"--approval-mode", "yolo"}
	}
	return []string{"--approval-mode", "auto_edit"}
}

// geminiPolicy is the file with the rules of a run. A rule of --admin-policy is stronger than
// those of the user and of the approval mode, unless /etc/gemini-cli/policies has rules: then
// the flag has no effect (https://geminicli.com/docs/reference/policy-engine).
const geminiPolicy = "gemini-policy.toml"

func geminiTerms(g grant, j task.Job) []string {
	if geminiRules(g, j) == nil {
		return nil
	}
	return []string{"--admin-policy", inDir(j, geminiPolicy)}
}

// geminiRules allows the tools of a run, and no other.
func geminiRules(g grant, _ task.Job) *rules {
	if g.tools == nil {
		return nil
	}
	text := "[[rule]]\ntoolName = \"*\"\ndecision = \"deny\"\npriority = 900\n"
	for _, name := range geminiTools.translate(g.tools) {
		quoted, err := jsontext.AppendQuote(nil, name) // a text of TOML, too
		if err != nil || !plainTool(name) || strings.Contains(name, "*") {
			continue
		}
		text += fmt.Sprintf("\n[[rule]]\ntoolName = %s\ndecision = \"allow\"\npriority = 950\n", quoted)
		if geminiTools.of(name) == CommandTools {
			text += "allowRedirection = true\n"
		}
	}
	return &rules{name: geminiPolicy, text: text}
}

// A geminiEnd is the last event of stream-json, or the one object of json.
type geminiEnd struct {
	Session  string `json:"session_id"`
	Response string `json:"response"`
	Status   string `json:"status"`
	Error    *struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Stats *struct {
		Tokens *int64 `json:"total_tokens"` // of stream-json
		Models map[string]struct {
			Tokens struct {
				Total int64 `json:"total"`
			} `json:"tokens"`
		} `json:"models"` // of json
	} `json:"stats"`
}

// readGemini reads a line of stream-json, or the one object of json, which has no type.
func readGemini(t *transcript, kind string, event jsontext.Value) {
	switch kind {
	case "init":
		t.readSession(event, "session_id")
	case "message":
		var data struct{ Role, Content string }
		if json.Unmarshal(event, &data, lenient, json.MatchCaseInsensitiveNames(true)) == nil && data.Role == "assistant" {
			if t.turned && t.text != "" && !strings.HasSuffix(t.text, "\n") {
				t.text += "\n" // a tool was used between the two texts
			}
			t.turned = false
			t.text += data.Content[:min(len(data.Content), max(0, maxText+1-len(t.text)))]
		}
	case "tool_use":
		var use struct {
			ID    string         `json:"tool_id"`
			Tool  string         `json:"tool_name"`
			Input jsontext.Value `json:"parameters"`
		}
		if json.Unmarshal(event, &use, lenient) == nil {
			t.uses.call(use.ID, use.Tool, use.Input)
		}
		t.turned, t.acted = true, true
	case "tool_result":
		t.readGeminiToolResult(event)
	case "error":
		var problem struct {
			Severity string `json:"severity"`
			Message  string `json:"message"`
		}
		if json.Unmarshal(event, &problem, lenient) == nil && problem.Severity == "error" {
			t.message = problem.Message // of a failure that the result event may not explain
		}
	case "result", "":
		var end geminiEnd
		if json.Unmarshal(event, &end, lenient) == nil {
			t.hearGeminiEnd(end)
		}
	}
}

func (t *transcript) hearGeminiEnd(end geminiEnd) {
	if end.Error == nil && end.Status == "" && end.Response == "" && end.Stats == nil {
		return // another object
	}
	t.done = true
	setDefault(&t.session, end.Session)
	t.text = cmp.Or(end.Response, t.text)
	if s := end.Stats; s != nil {
		total := int64(0)
		for _, model := range s.Models {
			total += model.Tokens.Total
		}
		if s.Tokens != nil {
			total = *s.Tokens
		}
		t.spent(total)
	}
	if end.Error != nil {
		t.fail(cmp.Or(end.Error.Message, end.Error.Type, "it did not say why"))
	} else if end.Status == "error" {
		t.fail(cmp.Or(t.message, "it did not say why"))
	}
}

// readGeminiToolResult reads the result of a call. Without a terminal, Gemini CLI doesn't offer
// tools that need a confirmation: a call of one ends as tool_not_registered. A rule of its
// policy engine ends as policy_violation (https://geminicli.com/docs/reference/policy-engine).
func (t *transcript) readGeminiToolResult(event jsontext.Value) {
	var data struct {
		ID     string `json:"tool_id"`
		Status string `json:"status"`
		Error  struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(event, &data, lenient) != nil {
		return
	}
	use := t.uses.take(data.ID)
	switch {
	case data.Status != "error":
		t.uses.succeed(use.tool)
	case data.Error.Type == "tool_not_registered" && isChange(use.tool):
		t.uses.deny(denial{use.tool, use.input, "Gemini CLI does not offer the tool in its approval mode", t.uses.order, ""})
	case data.Error.Type == "policy_violation":
		t.uses.deny(denial{use.tool, use.input, cmp.Or(data.Error.Message, "its policy denies it"), t.uses.order, ""})
	}
}
