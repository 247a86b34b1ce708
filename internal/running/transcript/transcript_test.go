package transcript_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/running/transcript"
)

var marks = map[transcript.Kind]string{transcript.Raw: "raw", transcript.Text: "text", transcript.Tool: "tool", transcript.Failure: "fail", transcript.End: "end", transcript.Notice: "note"}

// shown returns the transcript of an output, a line for each part.
func shown(output string) (lines []string, session transcript.Session) {
	var r transcript.Reader
	all := []transcript.Line{}
	for line := range strings.Lines(output) {
		all = append(all, r.Read([]byte(strings.TrimSuffix(line, "\n")))...)
	}
	for _, l := range append(all, r.Rest()...) {
		lines = append(lines, marks[l.Kind]+": "+l.Text)
	}
	return lines, r.Session()
}

func TestTheOutputOfEachProgramIsShownAsATranscript(t *testing.T) {
	for fixture, want := range map[string]struct {
		session transcript.Session
		lines   []string
	}{
		"claude/success.out": {transcript.Session{Program: "claude", ID: "3f1c9a52-6c1e-4a57-9c1b-0d5a0f2b7e11"}, []string{
			"text: I will look at the log.", "tool: Read request.json", "text: Two SLAs are missed.", "end: 8.1s, 2 turns, 6187 tokens, $0.05",
		}},
		"claude/success-json.out": {transcript.Session{Program: "claude", ID: "3f1c9a52-6c1e-4a57-9c1b-0d5a0f2b7e11"}, []string{
			"text: Two SLAs are missed.", "end: 8.1s, 2 turns, 6187 tokens, $0.05",
		}},
		"claude/limit.out": {transcript.Session{Program: "claude", ID: "3f1c9a52-6c1e-4a57-9c1b-0d5a0f2b7e11"}, []string{
			"text: You've hit your session limit · resets 11pm (Europe/Berlin)", "end: 300ms, 1 turn",
		}},
		"codex/success.out": {transcript.Session{Program: "codex", ID: "0199a213-81c0-7800-8aa1-bbab2a035a53"}, []string{
			"tool: Bash ls", "text: I have found it.", "text: Two SLAs are missed.", "end: 24885 tokens",
		}},
		"codex/error.out": {transcript.Session{Program: "codex", ID: "0199a213-81c0-7800-8aa1-bbab2a035a53"}, []string{
			"fail: the run failed: The model `gpt-0` does not exist",
		}},
		"cursor/success-stream.out": {transcript.Session{Program: "cursor", ID: "4e4bb132-b0ca-47cd-9522-23ca63211c70"}, []string{
			"text: Two SLAs are missed.", "end: 7.1s",
		}},
		"gemini/success.out": {transcript.Session{Program: "gemini", ID: "0a7d9b64-5a9c-4f0e-9a51-9f2f5d0c6f01"}, []string{
			"tool: read_file request.json", "text: Two SLAs are missed.", "end: 5.1s, 25113 tokens",
		}},
		"opencode/success.out": {transcript.Session{Program: "opencode", ID: "ses_deca54d71"}, []string{
			"text: I look at it.", "tool: read sla.csv", "text: Two SLAs are missed.",
		}},
		"opencode/login.out": {transcript.Session{Program: "opencode", ID: "ses_deca47cf1"}, []string{
			"fail: the run failed: Incorrect API key provided: sk-fake.",
		}},
	} {
		output, err := os.ReadFile(filepath.Join("../agent/testdata/profiles", fixture))
		if err != nil {
			t.Fatal(err)
		}
		lines, session := shown(string(output))
		if !slices.Equal(lines, want.lines) || session != want.session {
			t.Errorf("%s: %+v\n%s\nwant %+v\n%s", fixture, session, strings.Join(lines, "\n"), want.session, strings.Join(want.lines, "\n"))
		}
	}
}

const begin = `{"type":"system","subtype":"init","session_id":"s","cwd":"/home/me/app","tools":[]}` + "\n"

func TestToolsAreShownWithTheirMostTellingArgument(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"go test ./...\n","description":"Run tests"}}]}}`: "tool: Bash go test ./...",
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Edit","input":{"file_path":"/home/me/app/src/a.go","old_string":"x"}}]}}`:  "tool: Edit src/a.go",
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Grep","input":{"pattern":"func main","path":"/home/me/app/cmd"}}]}}`:       "tool: Grep func main cmd",
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Odd","input":{"n":1}}]}}`:                                                  `tool: Odd {"n":1}`,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"None","input":{}}]}}`:                                                      "tool: None",
		`{"type":"tool_call","subtype":"started","tool_call":{"shellToolCall":{"args":{"command":"ls"}}}}`:                                                        "tool: shell ls",
		`{"type":"tool_call","subtype":"completed","tool_call":{"readToolCall":{"args":{"path":"x"},"result":{"error":{"errorMessage":"no file"}}}}}`:             `fail: read failed: {"errorMessage":"no file"}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"9","is_error":true,"content":"File does not exist.\nmore"}]}}`:                 "fail: a tool failed: File does not exist.",
		`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["it broke"]}`:                                                              "fail: the run failed: it broke",
		`{"type":"something","new":1}`: "",
		`{"type":`:                     `raw: {"type":`,
		`plain words`:                  `raw: plain words`,
	} {
		if lines, _ := shown(begin + line); strings.Join(lines, "\n") != want {
			t.Errorf("%s:\n%s\nwant\n%s", line, strings.Join(lines, "\n"), want)
		}
	}
	codex := `{"type":"thread.started","thread_id":"t"}` + "\n"
	for line, want := range map[string]string{
		`{"type":"item.completed","item":{"id":"1","type":"command_execution","command":"/bin/bash -lc 'go test'","aggregated_output":"ok\nFAIL x\n","exit_code":1,"status":"failed"}}`: "tool: Bash go test\nfail: Bash failed: exit 1: FAIL x",
		`{"type":"item.completed","item":{"id":"1","type":"file_change","changes":[{"path":"a.go","kind":"update"},{"path":"b.go","kind":"add"}],"status":"completed"}}`:                "tool: Edit update a.go, add b.go",
		`{"type":"item.completed","item":{"id":"1","type":"mcp_tool_call","server":"github","tool":"search","arguments":{"query":"bug"},"status":"failed"}}`:                            "tool: github.search bug\nfail: github.search failed: failed",
		`{"type":"item.completed","item":{"id":"1","type":"web_search","query":"go 1.26"}}`:                                                                                             "tool: Search go 1.26",
	} {
		if lines, _ := shown(codex + line); strings.Join(lines, "\n") != want {
			t.Errorf("%s:\n%s\nwant\n%s", line, strings.Join(lines, "\n"), want)
		}
	}
}

// JSON of other agents, such as CAP messages or results, is their answer and stays as it is.
func TestTheOutputOfOtherAgentsStaysAsItIs(t *testing.T) {
	for _, output := range []string{
		`{"type":"message","content":"Sales rose."}`, `{"type":"result","ok":true}`, `{"summary":"done"}`, "[1]", "", "words", `{"type":"system"}`,
		`{"type":"error","message":"x"}`, `{"type":1}`, `{"type":"init"}`,
	} {
		var r transcript.Reader
		if lines := r.Read([]byte(output)); len(lines) != 1 || lines[0] != (transcript.Line{Kind: transcript.Raw, Text: output}) {
			t.Errorf("%q is shown as %v", output, lines)
		}
	}
}

// noted returns the notices of a fixture, of both outputs.
func noted(t *testing.T, fixture string) (notes []string) {
	t.Helper()
	read := func(ending string, read func([]byte) []transcript.Line) {
		text, err := os.ReadFile(filepath.Join("testdata", fixture+ending))
		if err != nil {
			text, _ = os.ReadFile(filepath.Join("../agent/testdata/profiles", fixture+ending)) // not every program prints to both
		}
		for line := range strings.Lines(string(text)) {
			for _, l := range read([]byte(strings.TrimSuffix(line, "\n"))) {
				if strings.Contains(l.Text, `{"`) || strings.HasPrefix(l.Text, "    at ") {
					t.Errorf("%s shows %q", fixture, l.Text)
				}
				if l.Kind == transcript.Notice || l.Kind == transcript.Failure {
					notes = append(notes, marks[l.Kind]+": "+l.Text)
				}
			}
		}
	}
	var out transcript.Reader
	var errs transcript.Errors
	read(".out", out.Read)
	read(".err", errs.Read)
	return notes
}

func TestAProgramThatTriesItsProviderAgainIsShownInALine(t *testing.T) {
	const unknown = "note: warning: Model metadata for `gpt-5` not found. Defaulting to fallback metadata; this can degrade performance and cause issues."
	const limited = "fail: the run failed: exceeded retry limit, last status: 429 Too Many Requests"
	for fixture, want := range map[string][]string{
		"claude/retrying": {
			"note: the provider limits requests; attempt 1 of 10, next in 1 s", "note: the provider limits requests; attempt 2 of 10, next in 2 s",
			"note: the provider limits requests; attempt 3 of 10, next in 3 s", "note: the provider limits requests; attempt 4 of 10, next in 5 s",
			"note: the provider limits requests; attempt 5 of 10, next in 9 s", "note: the provider limits requests; attempt 6 of 10, next in 20 s",
			"note: the provider limits requests; attempt 7 of 10, next in 35 s", "note: the provider limits requests; attempt 8 of 10, next in 35 s",
			"note: the provider limits requests; attempt 9 of 10, next in 35 s",
		},
		"claude/overloaded-retried": {
			"note: the provider is overloaded; attempt 1 of 10, next in 1 s", "note: the provider is overloaded; attempt 2 of 10, next in 2 s",
		},
		"codex/rate": {
			unknown, "note: the provider limits requests; attempt 1 of 5", "note: the provider limits requests; attempt 2 of 5",
			"note: the provider limits requests; attempt 3 of 5", "note: the provider limits requests; attempt 4 of 5",
			"note: the provider limits requests; attempt 5 of 5", limited,
		},
		"codex/unreachable": {unknown, "note: the provider can't be reached; it tries again"},
		"codex/cut": {
			unknown, "note: the connection to the provider broke; attempt 1 of 5", "note: the connection to the provider broke; attempt 2 of 5",
			"note: the connection to the provider broke; attempt 3 of 5", "note: the connection to the provider broke; attempt 4 of 5",
			"note: the connection to the provider broke; attempt 5 of 5",
			"fail: the run failed: stream disconnected before completion: Transport error: network error: error decoding response body",
		},
		"codex/reconnected": {"note: the provider refuses the login; attempt 1 of 5"},
		"gemini/retrying": {
			"note: the provider is overloaded; attempt 1", "note: the provider is overloaded; attempt 2", "note: the provider is overloaded; attempt 3",
			"note: the provider is overloaded; attempt 4", "note: the provider is overloaded; attempt 5",
		},
		"gemini/waiting":    {"note: the provider limits requests; attempt 1, next in 70 s", "note: the provider limits requests; attempt 2, next in 72 s"},
		"gemini/retry-info": {"fail: the run failed: [API Error: You exceeded your current quota, please check your plan and billing details.\nSuggested retry after 3600s.]\nPlease wait and try again later. To increase your limits, request a quota increase through AI Studio, or switch to another /auth method"},
		"gemini/key":        {"fail: the run failed: [API Error: API key not valid. Please pass a valid API key.]"},
		"opencode/retrying": {
			"note: the provider did not answer: The engine is currently overloaded, please try again later; attempt 1",
			"note: the provider did not answer: The engine is currently overloaded, please try again later; attempt 2",
			"note: the provider did not answer: The engine is currently overloaded, please try again later; attempt 3",
			"note: the provider did not answer: The engine is currently overloaded, please try again later; attempt 4",
			"note: the provider did not answer: The engine is currently overloaded, please try again later; attempt 5",
		},
	} {
		if got := noted(t, fixture); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", fixture, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestAProblemOfCodexThatDoesNotEndItsRunIsAWarning(t *testing.T) {
	lines, _ := shown(`{"type":"thread.started","thread_id":"t"}` + "\n" + `{"type":"error","message":"the log is full"}` + "\n" +
		`{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"Done."}}` + "\n" + `{"type":"error","message":"odd"}`)
	if want := []string{"note: warning: the log is full", "text: Done.", "note: warning: odd"}; !slices.Equal(lines, want) {
		t.Errorf("shown as %q; want %q", lines, want)
	}
}

func TestARefusalOfTheProviderIsReadFromTheLogOfOpenCode(t *testing.T) {
	const line = `timestamp=2026-11-26T12:01:07.164Z level=ERROR run=e57c027c message="stream error" providerID=fake modelID=fake-model ` +
		`session.id=ses_1 small=false agent=build mode=primary error.error="AI_APICallError: Say \"please\" in 3600s."`
	want := transcript.Refusal{At: time.UnixMilli(1795694467164), Session: "ses_1", Words: `Say "please" in 3600s.`}
	if got, ok := transcript.OpenCodeRefusal([]byte(line)); !ok || got != want {
		t.Errorf("OpenCodeRefusal = %+v, %v; want %+v", got, ok, want)
	}
	for _, other := range []string{
		"", "words", line[20:], strings.Replace(line, "small=false", "small=true", 1), strings.Replace(line, "stream error", "other", 1),
		strings.Replace(line, "12:01", "99:01", 1), strings.TrimSuffix(line, `"`),
	} {
		if got, ok := transcript.OpenCodeRefusal([]byte(other)); ok {
			t.Errorf("OpenCodeRefusal(%s) = %+v; want none", other, got)
		}
	}
}

func TestUnknownEventsOfAKnownProgramAreCountedAndNotShown(t *testing.T) {
	var r transcript.Reader
	for _, line := range []string{
		`{"type":"system","subtype":"hook_started","session_id":"s"}`, `{"type":"system","subtype":"init","session_id":"s","tools":[]}`,
		`{"type":"new","prompt":"secret"}`, `{"type":"newer"}`,
	} {
		if lines := r.Read([]byte(line)); len(lines) > 0 {
			t.Errorf("%s is shown as %v", line, lines)
		}
	}
	if r.Hidden() != 2 {
		t.Errorf("%d events are counted; want 2", r.Hidden())
	}
}

// The events with which a model or a tool goes on, and those that only say that a program lives.
func TestOnlyEventsOfTheModelAndItsToolsAreProgress(t *testing.T) {
	for line, idle := range map[string]string{
		`{"type":"system","subtype":"init","session_id":"s"}`:                "",
		`{"type":"assistant","message":{"content":[]}}`:                      "",
		`{"type":"item.started","item":{"type":"command_execution"}}`:        "",
		`{"type":"turn.completed","usage":{}}`:                               "",
		`{"type":"message","role":"assistant","content":"x"}`:                "",
		`{"type":"text","sessionID":"s","part":{"text":"x"}}`:                "",
		`{"type":"something","new":1}`:                                       "",
		`words`:                                                              "all",
		`{"type":"system","subtype":"api_retry","attempt":1}`:                "all",
		`{"type":"rate_limit_event"}`:                                        "all",
		`{"type":"keep_alive"}`:                                              "all",
		`{"type":"error","message":"Reconnecting... 1/5"}`:                   "all",
		`{"type":"item.completed","item":{"type":"error","message":"odd"}}`:  "codex",
		`{"type":"assistant","message":{"content":[]},"error":"rate_limit"}`: "claude",
	} {
		for _, p := range []string{"claude", "codex", "cursor", "gemini", "opencode"} {
			if got := transcript.IsIdle(p, []byte(line)); got != (idle == "all" || idle == p) {
				t.Errorf("IsIdle(%s, %s) = %v", p, line, got)
			}
		}
	}
}

func TestWhatAProgramDoesNowIsReadFromTheEndOfItsOutput(t *testing.T) {
	for output, want := range map[string]string{
		begin: "",
		begin + `{"type":"assistant","message":{"content":[{"type":"text","text":"One.\nTwo."}]}}` + "\n":                                                   "Two.",
		begin + `{"type":"system","subtype":"api_retry","attempt":4,"max_retries":10,"retry_delay_ms":11500,"error_status":529}` + "\n" + `{"type":"assist`: "the provider is overloaded; attempt 4 of 10, next in 12 s",
	} {
		if got, known := transcript.Latest([]byte(output), []byte(output[len(begin)/2:])); got != want || !known {
			t.Errorf("Latest(%s) = %q, %v; want %q", output, got, known, want)
		}
	}
	if got, known := transcript.Latest([]byte("words\n"), []byte("words\n")); known {
		t.Errorf("Latest of another agent = %q", got)
	}
	if got := transcript.LatestError([]byte("noise\nAttempt 2 failed with status 503. Retrying with backoff... x\n    at a {\n  status: 503\n}\n")); got != "the provider is overloaded; attempt 2" {
		t.Errorf("LatestError = %q", got)
	}
}

func FuzzATranscriptLosesNoLineThatIsNoEvent(f *testing.F) {
	for _, name := range []string{"claude", "codex", "cursor", "gemini", "opencode"} {
		files, _ := filepath.Glob("../agent/testdata/profiles/" + name + "/*.out")
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		var r transcript.Reader
		for line := range bytes.Lines(output) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			lines := r.Read(line)
			if !bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) && (len(lines) == 0 || lines[len(lines)-1].Text != string(line)) {
				t.Errorf("%q is shown as %v", line, lines)
			}
		}
		r.Rest()
	})
}

func TestTheOutputOfAHostIsShownAsATranscript(t *testing.T) {
	update := func(u string) string {
		return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":` + u + "}}\n"
	}
	lines, session := shown(update(`{"sessionUpdate":"available_commands_update","availableCommands":[]}`) +
		update(`{"sessionUpdate":"plan","entries":[{"content":"Look","status":"completed"},{"content":"Write","status":"pending"}]}`) +
		update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I "}}`) +
		update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"look."}}`) +
		update(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Preparing","kind":"edit","status":"pending","rawInput":{}}`) +
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","title":"Write a.txt","rawInput":{"file_path":"a.txt"},`+
			`"content":[{"type":"diff","path":"a.txt","oldText":null,"newText":"hi\n"}]}`) +
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}`) +
		update(`{"sessionUpdate":"tool_call","toolCallId":"c2","title":"ls x","kind":"execute","status":"in_progress"}`) +
		update(`{"sessionUpdate":"tool_call_update","toolCallId":"c2","status":"failed","content":[{"type":"content","content":{"type":"text","text":"no x"}}]}`) +
		update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}`) +
		`{"type":"result","status":"ok","text":"Done.","session_id":"s1","stop_reason":"end_turn","tokens":42,"cost":{"amount":0.25,"currency":"USD"}}` + "\n")
	want := []string{
		"note: plan:\n[x] Look\n[ ] Write", "text: I look.", "tool: edit Write a.txt", "raw: --- /dev/null\n+++ a.txt\n@@ -0,0 +1,1 @@\n+hi",
		"tool: execute ls x", "fail: execute ls x failed: no x", "text: Done.", "end: 42 tokens, $0.25",
	}
	if !slices.Equal(lines, want) || session != (transcript.Session{Program: "acp", ID: "s1"}) {
		t.Errorf("the transcript is %q of %+v; want %q", lines, session, want)
	}
	failed, _ := shown(`{"type":"result","status":"error","text":"","session_id":"","stop_reason":"","error":{"kind":"agent_protocol","message":"no JSON"}}` + "\n")
	if !slices.Equal(failed, []string{"fail: the run failed: no JSON"}) {
		t.Errorf("the transcript of a failure is %q", failed)
	}
}
