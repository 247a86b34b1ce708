package dialect_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

func capCodec(t testing.TB) dialect.Codec {
	t.Helper()
	c, ok := dialect.Of(envelope.CAP)
	if !ok {
		t.Fatal("no codec reads CAP")
	}
	return c
}

// said is a CAP message of its type with the required members and further ones.
func said(word, more string) string {
	words := map[string]string{
		"message": `"content":"hello"`, "delegation_notice": `"context_summary":"do it"`,
		"error_response": `"error_code":504,"error_message":"late"`, "oversight_inquiry": `"inquiry":"why?"`,
	}[word]
	return fmt.Sprintf(`{"type":%q,"task_id":"T1.1","sender_id":"pm-1","recipient_id":"analyst-1",%s%s}`, word, words, more)
}

func decodeCAP(t *testing.T, line string) envelope.Message {
	t.Helper()
	m, findings := capCodec(t).Decode([]byte(line), envelope.Strict)
	if findings.Refused() {
		t.Fatalf("%s is refused: %v", line, findings)
	}
	return m
}

func walkThrough(t testing.TB) [][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/cap-walkthrough.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(bytes.Lines(text))
}

func TestCAPReadsTheMessagesOfItsWalkThrough(t *testing.T) {
	want := []string{
		"task.requested T1 orchestrator pm-1", "info T1 pm-1 user", "info T1 user pm-1", "task.delegated T1.1 pm-1 analyst-1",
		"info T1.1 analyst-1 pm-1", "info T1.1 pm-1 analyst-1", "task.delegated T1.1.1 analyst-1 qa-1", "review.inquiry T1.1.1 qa-1 analyst-1",
		"info T1.1.1 analyst-1 qa-1", "info T1.1.1 qa-1 pm-1", "info T1 pm-1 orchestrator", "task.failed T1 agent-x agent-y",
	}
	for i, line := range walkThrough(t) {
		m, findings := capCodec(t).Decode(line, envelope.Strict)
		if len(findings) > 0 {
			t.Errorf("%s: %v; want nothing to say", line, findings)
		}
		if got := fmt.Sprint(m.Act, " ", m.Task, " ", m.From, " ", strings.Join(m.To, ",")); got != want[i] {
			t.Errorf("message %d is %q, want %q", i, got, want[i])
		}
		if m.Thread != "T1" || m.Dialect != envelope.CAP || !bytes.Equal(m.Raw, bytes.TrimSpace(line)) {
			t.Errorf("message %d: thread %q, dialect %q, raw %s", i, m.Thread, m.Dialect, m.Raw)
		}
	}
}

func TestCAPAsksForWorkWithADelegationNotice(t *testing.T) {
	m := decodeCAP(t, string(walkThrough(t)[6]))
	r := m.Request
	if m.Tie != envelope.Assist || r.ID != "T1.1.1" || r.Requester != "analyst-1" || r.Agent != "qa-1" || r.Type != "cap.delegation" ||
		r.Description != "Analysis complete; please verify data accuracy and relevance." || r.Sensitivity != envelope.Internal || r.Role != "" {
		t.Errorf("the request is %+v", r)
	}
	if r.Hash != m.Hash || !bytes.Equal(r.Raw, m.Raw) {
		t.Error("the request does not have the bytes and the hash of its message")
	}
	if want := []envelope.Ref{{Kind: "file", URI: "file:///tmp/eda_report_findings_with_explanations.md"}}; !slices.Equal(r.Refs, want) {
		t.Errorf("refs %v, want %v", r.Refs, want)
	}
	if want := `{"attachments":[{"type":"file"`; !strings.HasPrefix(string(r.Payload), want) {
		t.Errorf("payload %s, want it to begin with %s", r.Payload, want)
	}
}

func TestCAPRefusesAnotherShape(t *testing.T) {
	for _, c := range []struct{ line, field string }{
		{`{"type":"message","sender_id":"a","recipient_id":"b","content":"x"}`, "task_id"},
		{`{"type":"message","task_id":"T","recipient_id":"b","content":"x"}`, "sender_id"},
		{`{"type":"message","task_id":"T","sender_id":"a","content":"x"}`, "recipient_id"},
		{`{"task_id":"T","sender_id":"a","recipient_id":"b","content":"x"}`, "type"},
		{`{"type":"praise","task_id":"T","sender_id":"a","recipient_id":"b"}`, "type"},
		{`{"type":"message","task_id":7,"sender_id":"a","recipient_id":"b","content":"x"}`, "task_id"},
		{`{"type":"message","task_id":"","sender_id":"a","recipient_id":"b","content":"x"}`, "task_id"},
		{`{"type":"message","task_id":"T","sender_id":"a\u202eb","recipient_id":"b","content":"x"}`, "sender_id"},
		{`{"type":"message","task_id":"T","sender_id":"a","recipient_id":["b"],"content":"x"}`, "recipient_id"},
		{`{"type":"message","task_id":"T","sender_id":"a","recipient_id":"b"}`, "content"},
		{`{"type":"message","task_id":"T","sender_id":"a","recipient_id":"b","content":{}}`, "content"},
		{`{"type":"delegation_notice","task_id":"T","sender_id":"a","recipient_id":"b"}`, "context_summary"},
		{`{"type":"oversight_inquiry","task_id":"T","sender_id":"a","recipient_id":"b"}`, "inquiry"},
		{`{"type":"error_response","task_id":"T","sender_id":"a","recipient_id":"b","error_code":504}`, "error_message"},
		{`{"type":"error_response","task_id":"T","sender_id":"a","recipient_id":"b","error_message":"x"}`, "error_code"},
		{`{"type":"error_response","task_id":"T","sender_id":"a","recipient_id":"b","error_message":"x","error_code":"504"}`, "error_code"},
		{`{"type":"error_response","task_id":"T","sender_id":"a","recipient_id":"b","error_message":"x","error_code":504.5}`, "error_code"},
		{`{"type":"error_response","task_id":"T","sender_id":"a","recipient_id":"b","error_message":"x","error_code":1e400}`, "error_code"},
		{said("message", `,"expects_reply":"yes"`), "expects_reply"},
		{said("message", `,"attachments":{}`), "attachments"},
		{said("message", `,"attachments":[7]`), "attachments[0]"},
		{said("message", `,"attachments":[{"type":"hologram"}]`), "attachments[0].type"},
		{said("message", `,"attachments":[{"type":"text_snippet","text":"a"},{}]`), "attachments[1].type"},
		{said("message", `,"attachments":[{"type":"tool_call_result","tool":"t","result":1}]`), "attachments[0].server_id"},
		{said("message", `,"attachments":[{"type":"tool_call_result","server_id":"s","result":1}]`), "attachments[0].tool"},
		{said("message", `,"attachments":[{"type":"tool_call_result","server_id":"s","tool":"t"}]`), "attachments[0].result"},
		{said("message", `,"attachments":[{"type":"text_snippet"}]`), "attachments[0].text"},
		{said("message", `,"attachments":[{"type":"python_object"}]`), "attachments[0].object"},
		{said("message", `,"attachments":[{"type":"file"}]`), "attachments[0].path"},
		{said("message", `,"attachments":[{"type":"file","path":"a","url":"http://b/"}]`), "attachments[0]"},
	} {
		_, findings := capCodec(t).Decode([]byte(c.line), envelope.Strict)
		if findings.Kind() != envelope.InvalidEnvelope || findings.Refusals()[0].Field != c.field {
			t.Errorf("%s: %v; want %s refused", c.line, findings, c.field)
		}
	}
}

func TestCAPRefusesInvalidJSONAndDuplicateNames(t *testing.T) {
	for line, kind := range map[string]envelope.Kind{
		`{"type":"message","sender_id":"a",`:              envelope.InvalidJSON,
		said("message", `,"content":"again"`):             envelope.InvalidEnvelope,
		`[` + said("message", "") + `]`:                   envelope.InvalidEnvelope,
		said("message", `,"x":`+strings.Repeat("[", 500)): envelope.InvalidEnvelope,
	} {
		if _, findings := capCodec(t).Decode([]byte(line), envelope.Strict); findings.Kind() != kind {
			t.Errorf("%.80s: %v; want %s", line, findings, kind)
		}
	}
}

func TestCAPNamesTheSenderOfALineThatIsCutOff(t *testing.T) {
	m, findings := capCodec(t).Decode([]byte(said("message", "")[:70]), envelope.Strict)
	if !findings.Refused() || m.From != "pm-1" || m.Task != "T1.1" {
		t.Errorf("%v, task %q of %q", findings, m.Task, m.From)
	}
}

func TestCAPTakesAWholeNumberHoweverItIsWritten(t *testing.T) {
	for _, number := range []string{"504", "504.0", "5.04e2"} {
		m := decodeCAP(t, strings.Replace(said("error_response", ""), "504", number, 1))
		if m.Failure.Code != "504" || m.Failure.Kind != envelope.Timeout || !m.Failure.Retry {
			t.Errorf("error_code %s is %+v", number, m.Failure)
		}
	}
}

func TestCAPReadsCodesThatAreInNoTable(t *testing.T) {
	for code, kind := range map[int]envelope.Kind{
		408: envelope.Timeout, 403: envelope.SecurityViolation, 418: envelope.InvalidEnvelope, 599: envelope.InternalError, 123: envelope.AgentError, -1: envelope.AgentError,
	} {
		m := decodeCAP(t, strings.Replace(said("error_response", ""), "504", fmt.Sprint(code), 1))
		if m.Failure.Kind != kind {
			t.Errorf("error_code %d is %q, want %q", code, m.Failure.Kind, kind)
		}
	}
}

func TestCAPCarriesTheExactKindBeforeTheWords(t *testing.T) {
	m := decodeCAP(t, strings.Replace(said("error_response", ""), "late", "[deadline_exceeded] late", 1))
	if m.Failure.Kind != envelope.DeadlineExceeded || m.Failure.Message != "late" || m.Text != "late" {
		t.Errorf("the failure is %+v, text %q", m.Failure, m.Text)
	}
	m = decodeCAP(t, strings.Replace(said("error_response", ""), "late", "[whatever] late", 1))
	if m.Failure.Kind != envelope.Timeout || m.Failure.Message != "[whatever] late" {
		t.Errorf("the failure is %+v", m.Failure)
	}
}

func TestCAPRefusesAPathThatClimbs(t *testing.T) {
	for _, path := range []string{"../x", "a/../../x"} {
		_, findings := capCodec(t).Decode([]byte(said("message", `,"attachments":[{"type":"file","path":"`+path+`"}]`)), envelope.Strict)
		if findings.Kind() != envelope.SecurityViolation {
			t.Errorf("%s: %v; want it refused as a security violation", path, findings)
		}
	}
}

func TestTheReferencesOfACAPRequestAreItsAttachments(t *testing.T) {
	m := decodeCAP(t, said("delegation_notice", `,"attachments":[{"type":"text_snippet","text":"x"},{"type":"file","url":"http://b/"},{"type":"file","path":"c"}]`))
	for i, want := range []string{"attachments[1].url", "attachments[2].path"} {
		if got := dialect.RefField(m.Request, i); got != want {
			t.Errorf("reference %d is %s, want %s", i, got, want)
		}
	}
	ainl := envelope.Task{Raw: []byte(`{"task_id":"t1"}`)}
	if got := dialect.RefField(ainl, 1); got != "input.refs[1].uri" {
		t.Errorf("reference 1 of AINL is %s", got)
	}
}

func TestCAPLeavesAPythonObjectAsItIs(t *testing.T) {
	const object = `{"type":"python_object","object":{"__reduce__":["os.system",["rm -rf /"]],"pickle":"gASVBQAAAAAAAACMAXiULg=="}}`
	m := decodeCAP(t, said("delegation_notice", `,"attachments":[`+object+`]`))
	if len(m.Attachments) != 1 || string(m.Attachments[0].Raw) != object {
		t.Errorf("attachments %+v", m.Attachments)
	}
	if want := `{"attachments":[` + object + `]}`; string(m.Request.Payload) != want {
		t.Errorf("payload %s, want %s", m.Request.Payload, want)
	}
}

func TestCAPKeepsUnknownMembers(t *testing.T) {
	m, findings := capCodec(t).Decode([]byte(said("message", `,"mood":"fine","timestamp":"2026-03-09T23:00:00"`)), envelope.Strict)
	if findings.Refused() || len(findings) != 2 || string(m.Extra) != `{"mood":"fine"}` || !m.Time.IsZero() {
		t.Errorf("%v, extra %s, time %v", findings, m.Extra, m.Time)
	}
}

// A time in another form is left out; a text that is no time is refused.
func TestCAPRefusesATimestampThatIsNoTime(t *testing.T) {
	for value, refused := range map[string]bool{
		`"yesterday"`: true, `"tomorrow 10:00"`: true, `""`: true, `true`: true, `{}`: true, `["2026-03-09T23:00:00Z"]`: true, `"2026-13-09T23:00:00Z"`: true,
		`"2026-03-09T23:00:00Z"`: false, `"2026-03-09T23:00:00.123+02:00"`: false, `"2026-03-09T23:00:00.123456"`: false, `"2026-03-09 23:00:00"`: false,
		`"2026-03-09"`: false, `1709078400`: false, `null`: false,
	} {
		_, findings := capCodec(t).Decode([]byte(said("delegation_notice", `,"timestamp":`+value)), envelope.Strict)
		if findings.Refused() != refused || refused && (findings.Kind() != envelope.InvalidEnvelope || findings[0].Field != "timestamp") {
			t.Errorf("CAP-11: timestamp %s gives %v; want it refused: %v", value, findings, refused)
		}
	}
}

func TestCAPNamesATaskByADigestWhereItsOwnNameIsNoFileName(t *testing.T) {
	m := decodeCAP(t, strings.Replace(said("delegation_notice", ""), "T1.1", "../T/1.1", 1))
	if !strings.HasPrefix(string(m.Task), "h-") || len(m.Task) != 34 || m.ID != "../T/1.1" || m.Request.ID != m.Task {
		t.Errorf("task %q, message %q, request %q", m.Task, m.ID, m.Request.ID)
	}
	// A message about the task has the original name again.
	line, _ := capCodec(t).Encode(envelope.Message{Act: envelope.Completes, Task: m.Task, Cause: m.ID, From: "analyst-1", To: []string{"pm-1"}})
	if !bytes.Contains(line, []byte(`"task_id":"../T/1.1"`)) {
		t.Errorf("the answer is %s", line)
	}
}
