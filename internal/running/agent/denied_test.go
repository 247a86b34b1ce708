package agent_test

import (
	"strings"
	"testing"

	"mailboxd/internal/running/agent"
)

// Each fixture has a denied edit. Those with a denied command have it, too.
func TestDeniedCallsAreListedAndAskForAReview(t *testing.T) {
	for _, c := range []struct{ fixture, denied, review string }{
		{
			"claude/denied", // Edit succeeded after Write was denied, so Write is only listed
			`[{"tool":"Bash","input":{"command":"git push"},"why":"the tool is not among those that the run may use"},` +
				`{"tool":"Write","input":{"content":"hi","file_path":"/work/app/hello.txt"},` +
				`"why":"Permission to use Write has been denied because Claude Code is running in don't ask mode."}]`,
			"the agent was not allowed to use Bash",
		},
		{
			"codex/denied",
			`[{"tool":"apply_patch","why":"patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings"}]`,
			"the agent was not allowed to use apply_patch",
		},
		{
			"gemini/denied",
			`[{"tool":"write_file","input":{"content":"hi","file_path":"hello.txt"},"why":"Gemini CLI does not offer the tool in its approval mode"}]`,
			"the agent was not allowed to use write_file",
		},
		{
			"opencode/denied",
			`[{"tool":"bash","why":"opencode does not offer the tool with its permissions"},` +
				`{"tool":"write","input":{"content":"hi","filePath":"hello.txt"},"why":"The user rejected permission to use this specific tool call."}]`,
			"the agent was not allowed to use bash, write",
		},
	} {
		r := outcome(t, replaying(t, c.fixture, 0)).Result
		if want := `"denied":` + c.denied; !strings.Contains(string(r.Output.Extra), want) {
			t.Errorf("%s: output has\n%s\nwant\n%s", c.fixture, r.Output.Extra, want)
		}
		if !r.Review.Required || r.Review.Reason != c.review {
			t.Errorf("%s: review = %+v; want %q", c.fixture, r.Review, c.review)
		}
	}
}

func TestADeniedCallWithALaterSuccessOfItsKindAsksForNoReview(t *testing.T) {
	const lines = `{"type":"init","session_id":"s"}
{"type":"tool_use","tool_name":"replace","tool_id":"1","parameters":{"file_path":"/etc/x"}}
{"type":"tool_result","tool_id":"1","status":"error","error":{"type":"policy_violation","message":"Tool execution denied by policy."}}
{"type":"tool_use","tool_name":"write_file","tool_id":"2","parameters":{"file_path":"x"}}
{"type":"tool_result","tool_id":"2","status":"success"}
{"type":"result","status":"success","stats":{"total_tokens":1}}
`
	b := printing(t, lines, 0)
	b.Profile = agent.Gemini
	r := outcome(t, b).Result
	want := `"denied":[{"tool":"replace","input":{"file_path":"/etc/x"},"why":"Tool execution denied by policy."}]`
	if !strings.Contains(string(r.Output.Extra), want) || r.Review.Required {
		t.Errorf("output %s, review %+v; want %s and no review", r.Output.Extra, r.Review, want)
	}
}

// Version 0.169.0 printed these lines with --sandbox read-only, and with the feature shell_tool off.
func TestACommandOfCodexThatMayNotWriteIsDenied(t *testing.T) {
	const failed = `{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"/bin/bash -lc 'echo hi > hello.txt'",` +
		`"aggregated_output":"/bin/bash: line 1: hello.txt: Read-only file system\n","exit_code":1,"status":"failed"}}` + "\n"
	const read = `{"type":"item.completed","item":{"id":"item_2","type":"command_execution","command":"/bin/bash -lc 'cat a.txt'",` +
		`"aggregated_output":"Read-only file system: a page about it\n","exit_code":0,"status":"completed"}}` + "\n"
	const end = `{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}` + "\n"
	denied := `"denied":[{"tool":"exec_command","input":{"command":"/bin/bash -lc 'echo hi > hello.txt'"},"why":"its sandbox lets it only read there"}]`
	for lines, want := range map[string]string{failed + read + end: denied, read + end: ""} {
		b := printing(t, lines, 0)
		b.Profile = agent.Codex
		r := outcome(t, b).Result
		if !strings.Contains(string(r.Output.Extra), want) || r.Review.Required != (want != "") {
			t.Errorf("output %s, review %+v; want %s", r.Output.Extra, r.Review, want)
		}
	}
}

// A model's words are no event, whatever they say.
func TestWordsAboutADenialAreNone(t *testing.T) {
	r := outcome(t, claudePrinting(t, `{"type":"result","subtype":"success","is_error":false,"result":"Permission to use Write has been denied.","session_id":"x"}`)).Result
	if strings.Contains(string(r.Output.Extra), "denied") || r.Review.Required {
		t.Errorf("output %s, review %+v; want neither", r.Output.Extra, r.Review)
	}
}
