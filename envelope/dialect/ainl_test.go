package dialect_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

func ainlCodec(t testing.TB) dialect.Codec {
	t.Helper()
	c, ok := dialect.Of(envelope.AINL)
	if !ok {
		t.Fatal("no codec reads AINL")
	}
	return c
}

// sameLimits compares the limits of two requests.
func sameLimits(t testing.TB, got, want envelope.Task) {
	t.Helper()
	ignored := cmpopts.IgnoreFields(envelope.Task{}, "Raw", "Hash", "Role", "Input", "Payload", "Type", "Description", "Metadata")
	if diff := cmp.Diff(want, got, ignored); diff != "" {
		t.Errorf("the limits differ: %s", diff)
	}
}

// A request goes through any dialect and comes back with all its limits.
func TestARequestOfAINLComesBackFromCLowl(t *testing.T) {
	limited := ainlLine
	for name, value := range limits {
		limited = set(t, limited, name, value)
	}
	limited = set(t, limited, "input", `{"payload":{"q":"x","n":1.50},"refs":[{"kind":"log","uri":"file://b"},{"kind":"c","uri":"https://c"}]}`)
	limited = set(t, limited, "description", `"find \"it\""`)
	m, findings := ainlCodec(t).Decode([]byte(limited), envelope.Strict)
	if findings.Refused() {
		t.Fatal(findings)
	}
	line, _ := saidInCLowl(t, m)
	back, findings := clowl(t).Decode([]byte(line), envelope.Strict)
	if findings.Refused() || back.Task != "t1" || back.From != "ken" || back.To[0] != "radar" || back.Type != "search" || back.Text != `find "it"` {
		t.Fatalf("it is read as %+v: %v", back, findings)
	}
	sameLimits(t, back.Request, m.Request)
	if got := back.Request; got.Role != "planner" || string(got.Metadata["k"]) != "1" || got.Description != `find "it"` ||
		value(string(got.Payload), "q") != `"x"` || value(string(got.Payload), "n") != "1.50" {
		t.Errorf("it asks for %+v", got)
	}
}

// A request that came in AINL is passed on byte for byte, on one line.
func TestARequestInAINLIsPassedOnAsItCame(t *testing.T) {
	m, _ := ainlCodec(t).Decode([]byte(strings.Replace(ainlLine, ",", ",\n  ", 3)), envelope.Strict)
	if line, lost := ainlCodec(t).Encode(m); string(line) != ainlLine || len(lost) > 0 {
		t.Errorf("said again as %s, lost %v", line, lost)
	}
	m.Raw = nil
	line, _ := ainlCodec(t).Encode(m)
	again, findings := envelope.DecodeTask(line, envelope.Strict)
	if len(findings) > 0 {
		t.Errorf("said again as %s: %v", line, findings)
	}
	if diff := cmp.Diff(m.Request, again, cmpopts.IgnoreFields(envelope.Task{}, "Raw")); diff != "" {
		t.Errorf("said again as %s: %s", line, diff)
	}
}

func TestAINLReadsWhatACLowlRequestAsksFor(t *testing.T) {
	m, _ := clowl(t).Decode([]byte(complete), envelope.Strict)
	line, lost := ainlCodec(t).Encode(m)
	got, findings := envelope.DecodeTask(line, envelope.Strict)
	if findings.Refused() || got.ID != "m001" || got.Requester != "oscar" || got.Agent != "radar" || got.Role != "executor" || got.Type != "search" ||
		got.Description != "find it" || got.Named(envelope.ThreadID) != "pipe001" || len(got.Refs) != 1 {
		t.Errorf("%s: %v", line, findings)
	}
	if want := []string{"det", "cid", "tid", "pid", "inline", "hash"}; !slices.Equal(lost, want) {
		t.Errorf("lost %v; want %v", lost, want)
	}
	for path, want := range map[string]string{"mbx.dialect": `"clowl"`, "mbx.tid": `"t001"`, "mbx.pid": `"m000"`, "mbx.det": "true", "mbx.inline": `"a"`, "mbx.hash": `"` + sum + `"`} {
		if got := membersIn(t, value(string(line), "metadata"))[path]; got != want {
			t.Errorf("metadata %s is %s; want %s", path, got, want)
		}
	}
}

func membersIn(t testing.TB, object string) map[string]string {
	t.Helper()
	raw := map[string]jsontext.Value{}
	if err := json.Unmarshal([]byte(object), &raw); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for name, value := range raw {
		all[name] = string(value)
	}
	return all
}

func TestAnAgentOfAINLOnlyAnswers(t *testing.T) {
	about := envelope.Task{ID: "m001", Agent: "radar", Requester: "oscar"}
	for _, c := range []struct {
		printed string
		act     envelope.Act
		failure envelope.Kind
		finding envelope.Kind
	}{
		{fullAnswer, envelope.Completes, "", ""},
		{"log\n{\"status\":\"ok\",\"summary\":\"s\"}\n", envelope.Completes, "", ""},
		{`{"status":"error","summary":"s"}`, envelope.Fails, envelope.AgentError, ""},
		{`{"status":"error","summary":"s","error":{"kind":"timeout","message":"m"},"needs_review":{}}`, envelope.Fails, envelope.Timeout, ""},
		{`{"status":"cancelled","summary":"s"}`, envelope.Fails, envelope.Cancelled, ""},
		{`{"x":1}`, "", "", envelope.OutputInvalid},
		{`{"task_id":"other","summary":"s"}`, "", "", envelope.IdentityMismatch},
		{`{"agent_id":"other","summary":"s"}`, "", "", envelope.IdentityMismatch},
		{`nothing`, "", "", envelope.OutputInvalid},
	} {
		said, findings := dialect.ReceiveAll(envelope.AINL, []byte(c.printed), about)
		if findings.Kind() != c.finding || len(said) == 1 && (said[0].Act != c.act || said[0].Failure.Kind != c.failure || said[0].Task != "m001") || (len(said) == 1) != (c.finding == "") {
			t.Errorf("%s is heard as %+v: %v", c.printed, said, findings)
		}
	}
}

// An answer that was given in one dialect is the same answer in the next.
func TestAnAnswerGoesFromAINLToCLowlAndBack(t *testing.T) {
	m, findings := ainlCodec(t).Receive([]byte(fullAnswer), envelope.Task{ID: "m001", Agent: "radar", Requester: "oscar"})
	if findings.Refused() {
		t.Fatal(findings)
	}
	line, _ := saidInCLowl(t, m)
	back, findings := clowl(t).Decode([]byte(line), envelope.Strict)
	if findings.Refused() || back.Act != envelope.Completes || back.Cause != "m001" {
		t.Fatalf("%s: %v", line, findings)
	}
	want := m.Answer
	want.TaskID, want.AgentID = "", "" // the message says who, and of what
	if diff := cmp.Diff(want, back.Answer); diff != "" {
		t.Errorf("%s: %s", line, diff)
	}
	back.Task = "m001"
	said, _ := ainlCodec(t).Encode(back)
	result, findings := envelope.DecodeResult(said)
	want.TaskID, want.AgentID = "m001", "radar"
	if diff := cmp.Diff(want, result); diff != "" || findings.Refused() {
		t.Errorf("%s: %v, %s", said, findings, diff)
	}
}

// A message that AINL doesn't have becomes a note: readable, and never a request.
func TestAINLEncodesOtherMessagesAsNotes(t *testing.T) {
	for _, d := range []envelope.Dialect{envelope.CLowl, envelope.CAP} {
		for _, m := range everything(t, d) {
			line, _ := ainlCodec(t).Encode(m)
			_, findings := envelope.DecodeTask(line, envelope.Strict)
			asked := m.Act == envelope.Requests || m.Act == envelope.Delegates
			if hash, bad := envelope.ContentHash(line); asked == findings.Refused() || bad.Refused() || hash == "" || bytes.ContainsAny(line, "\r\n") {
				t.Errorf("%s is said %s: %v", m.Act, line, findings)
			}
		}
	}
}
