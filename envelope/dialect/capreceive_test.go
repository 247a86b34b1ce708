package dialect_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

// receiveCAP decodes a line that the agent analyst-1 prints while it works on T1.1 for pm-1.
func receiveCAP(t *testing.T, raw string) envelope.Message {
	t.Helper()
	m, findings := capCodec(t).Receive([]byte(raw), working)
	if findings.Refused() {
		t.Fatalf("%s is refused: %v", raw, findings)
	}
	return m
}

var working = envelope.Task{ID: "T1.1", Agent: "analyst-1", Requester: "pm-1"}

func TestReceivingCAPAMessageToTheRequesterIsTheAnswer(t *testing.T) {
	m := receiveCAP(t, `{"type":"message","task_id":"T1.1","sender_id":"analyst-1","recipient_id":"pm-1","content":"Done.","confidence":"high",
		"attachments":[{"type":"file","path":"/tmp/r.md"},{"type":"text_snippet","text":"x"}]}`)
	a := m.Answer
	if m.Act != envelope.Completes || a.Status != envelope.OK || a.Output.Summary != "Done." {
		t.Errorf("heard %s %+v", m.Act, a)
	}
	if want := []envelope.Ref{{Kind: "file", URI: "file:///tmp/r.md"}}; !slices.Equal(a.Artifacts, want) {
		t.Errorf("artifacts %v, want %v", a.Artifacts, want)
	}
	for _, want := range []string{`"attachments":[{"type":"file"`, `"confidence":"high"`} {
		if !strings.Contains(string(a.Output.Extra), want) {
			t.Errorf("output %s, want it to have %s", a.Output.Extra, want)
		}
	}
}

func TestReceivingCAPAMessageThatExpectsAReplyIsNoAnswer(t *testing.T) {
	for raw, act := range map[string]envelope.Act{
		`{"type":"message","content":"Which one?","expects_reply":true}`:                            envelope.Informs,
		`{"type":"message","recipient_id":"user","content":"Which one?"}`:                           envelope.Informs,
		`{"type":"message","task_id":"T1.1.1","recipient_id":"pm-1","content":"It goes on."}`:       envelope.Informs,
		`{"type":"oversight_inquiry","inquiry":"Why?"}`:                                             envelope.Inquires,
		`{"type":"delegation_notice","task_id":"T1.1.1","recipient_id":"qa","context_summary":"."}`: envelope.Delegates,
		`{"type":"error_response","task_id":"T1.1.1","error_code":499,"error_message":"Stop."}`:     envelope.Fails,
	} {
		if m := receiveCAP(t, raw); m.Act != act || m.Answer.Status != "" {
			t.Errorf("%s was heard as %s with %+v, want %s and no answer", raw, m.Act, m.Answer, act)
		}
	}
}

func TestReceivingCAPAnAnswerThatEndsWithAQuestionMarkMayBeAQuestion(t *testing.T) {
	for raw, question := range map[string]bool{
		`{"type":"message","content":"Which one? \n"}`:                                                 true,
		`{"type":"message","content":"Which one?","attachments":[{"type":"text_snippet","text":"x"}]}`: true,
		`{"type":"message","content":"Which one?","expects_reply":false}`:                              false,
		`{"type":"message","content":"Which one? That one."}`:                                          false,
	} {
		if m := receiveCAP(t, raw); m.Act != envelope.Completes || m.WantsReply != question {
			t.Errorf("%s was heard as %s, a question: %v; want an answer, a question: %v", raw, m.Act, m.WantsReply, question)
		}
	}
}

func TestReceivingCAPAnErrorAboutItsTaskIsTheAnswer(t *testing.T) {
	m := receiveCAP(t, `{"type":"error_response","error_code":504,"error_message":"MCP timeout."}`)
	if m.Act != envelope.Fails || m.Answer.Status != envelope.Failed || m.Answer.Error.Kind != envelope.Timeout || m.Answer.Error.Message != "MCP timeout." {
		t.Errorf("heard %s %+v", m.Act, m.Answer)
	}
}

func TestReceivingCAPSuppliesTheMembersOfTheRuntime(t *testing.T) {
	m := receiveCAP(t, "{\n  \"content\": \"Done.\"\n}")
	if m.Act != envelope.Completes || m.Task != "T1.1" || m.From != "analyst-1" || !slices.Equal(m.To, []string{"pm-1"}) {
		t.Errorf("heard %+v", m)
	}
	again := decodeCAP(t, string(m.Raw))
	if again.Task != "T1.1" || again.From != "analyst-1" || again.Hash != m.Hash {
		t.Errorf("what was heard reads as %+v", again)
	}
}

// Models make times up, and an answer is worth more than its time.
func TestReceivingCAPLeavesOutATimestampThatIsNoTime(t *testing.T) {
	m, findings := capCodec(t).Receive([]byte(`{"type":"message","task_id":"T1.1","sender_id":"analyst-1","recipient_id":"pm-1","content":"Done.","timestamp":"yesterday"}`), working)
	if m.Act != envelope.Completes || findings.Refused() || len(findings) != 1 || findings[0].Field != "timestamp" {
		t.Errorf("heard %+v with %v; want the answer, and a warning about its timestamp", m, findings)
	}
	if again := decodeCAP(t, string(m.Raw)); again.Text != "Done." || again.Hash != m.Hash {
		t.Errorf("what was heard reads as %+v", again)
	}
}

func TestReceivingCAPGivesDelegatedWorkAlwaysTheSameName(t *testing.T) {
	const raw = `{"type":"delegation_notice","recipient_id":"qa-1","context_summary":"look"}`
	m, again := receiveCAP(t, raw), receiveCAP(t, raw)
	if !strings.HasPrefix(string(m.Task), "T1.1.") || m.Task != again.Task || m.Request.ID != m.Task || !bytes.Equal(m.Request.Raw, m.Raw) {
		t.Errorf("the work is %q with request %+v, then %q", m.Task, m.Request, again.Task)
	}
	if m.Act != envelope.Delegates || m.Tie != envelope.Assist || m.Request.Agent != "qa-1" || m.Request.Requester != "analyst-1" {
		t.Errorf("heard %+v", m)
	}
	if other := receiveCAP(t, strings.Replace(raw, "look", "look well", 1)); other.Task == m.Task {
		t.Errorf("other work has the same name, %q", m.Task)
	}
}

func TestReceivingCAPRefusesTheNameOfAnotherAgent(t *testing.T) {
	_, findings := capCodec(t).Receive([]byte(`{"type":"message","sender_id":"qa-1","content":"Verified."}`), working)
	if findings.Kind() != envelope.IdentityMismatch {
		t.Errorf("%v; want it refused", findings)
	}
}

func TestReceivingCAPAttributesErrorsToTheAgent(t *testing.T) {
	for _, raw := range []string{`{"summary":"done"}`, `{}`, `{"type":"praise"}`, `{"type":"message"}`, `{"content":7}`, `{"error_code":"504","error_message":"x"}`, `{"content":"a","content":"b"}`, `{`} {
		if _, findings := capCodec(t).Receive([]byte(raw), working); findings.Kind() != envelope.OutputInvalid {
			t.Errorf("%s: %v; want %s", raw, findings, envelope.OutputInvalid)
		}
	}
}

func TestReceivingCAPSaysWhatIsWrongWithAMessageWithoutItsEnvelope(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"error_response","error_code":"504","error_message":"late"}`:                 "error_code",
		`{"type":"message","content":"x","attachments":[{"type":"exe"}]}`:                     "attachments[0].type",
		`{"type":"message","content":"x","attachments":[{"type":"file","path":"../../etc"}]}`: "attachments[0].path",
	} {
		_, findings := dialect.ReceiveAll(envelope.CAP, []byte(text), working)
		if !strings.Contains(findings.Refusals().String(), want) {
			t.Errorf("%s is refused: %v; want %s in it", text, findings, want)
		}
	}
	_, findings := dialect.ReceiveAll(envelope.CAP, []byte(`{"type":"result","summary":"x"}`), working)
	if !strings.Contains(findings.String(), "is no message") {
		t.Errorf("a line of a log is refused: %v; want it no message", findings)
	}
}

func TestAReceivedCAPMessageIsOneLine(t *testing.T) {
	m := receiveCAP(t, "{\"type\":\"delegation_notice\",\n \"task_id\":\"T1.1.1\", \"sender_id\":\"analyst-1\",\n \"recipient_id\":\"qa-1\", \"context_summary\":\"look\"}")
	if bytes.ContainsAny(m.Raw, "\r\n") || !bytes.Equal(m.Raw, m.Request.Raw) {
		t.Errorf("it is %q, its request %q", m.Raw, m.Request.Raw)
	}
}
