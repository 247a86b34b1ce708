package dialect_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/testtools/strict"
)

// askedInCLowl is a task that a CLowl REQ asks radar for.
func askedInCLowl(t testing.TB) envelope.Task {
	t.Helper()
	m, findings := clowl(t).Decode([]byte(complete), envelope.Strict)
	if findings.Refused() {
		t.Fatal(findings)
	}
	return m.Request
}

// spoken is the one message in what an agent printed about that task.
func spoken(t *testing.T, printed string) envelope.Message {
	t.Helper()
	said, findings := dialect.ReceiveAll(envelope.CLowl, []byte(printed), askedInCLowl(t))
	if findings.Refused() || len(said) != 1 {
		t.Fatalf("%s: %d messages, %v", printed, len(said), findings)
	}
	m := said[0]
	if err := strict.CLowl(m.Raw); err != nil {
		t.Errorf("%s became %s: %v", printed, m.Raw, err)
	}
	if again, findings := clowl(t).Decode(m.Raw, envelope.Strict); findings.Refused() || again.ID != m.ID || again.Hash != m.Hash {
		t.Errorf("%s is kept as %s, which is %+v: %v", printed, m.Raw, again, findings)
	}
	return m
}

// All forms of a DONE: v0.2 without the members of the runtime, v0.1, CLowl-S, and the forms
// in which models wrap and shorten them.
func TestReceivingCLowlCompletesShortForms(t *testing.T) {
	for _, printed := range []string{
		`{"clowl":"0.2","p":"DONE","body":{"t":"search","d":{"summary":"found"}}}`,
		`{"p":"DONE","body":{"t":"search","d":{"summary":"found"}}}`,
		`{"p":"done","body":{"d":{"summary":"found"}}}`,
		`{"cl":"0.1","mid":"m1","p":"DONE","from":"radar","to":"oscar","cid":"pipe001","body":{"t":"search","d":{"summary":"found"}},"ctx":""}`,
		`{"cl":"0.1","mid":"m1","p":"DONE","from":"radar","to":"oscar","cid":"pipe001","body":{"t":"search","d":"found"},"ctx":"a.md"}`,
		`{"p":"DONE","from":"radar","to":"oscar","task":"search","data":{"summary":"found"},"ctx":"a.md"}`,
		`{"p":"DONE","t":"search","d":{"summary":"found"},"mid":null,"ts":null,"tid":null,"pid":null,"cid":null,"to":null,"from":null}`,
		"```json\n{\"p\":\"DONE\",\"task\":\"search\",\"data\":{\"summary\":\"found\"}}\n```\n",
		"starting up\n{\"level\":\"info\",\"msg\":\"x\"}\n{\n  \"p\": \"DONE\",\n  \"body\": {\"t\": \"search\", \"d\": {\"summary\": \"found\"}}\n}\nbye\n",
		`{"p":"DONE","to":"everybody","auth":"x","ts":"now","tid":"mine","body":{"t":"search","d":{"summary":"found"}}}`,
	} {
		m := spoken(t, printed)
		if m.Act != envelope.Completes || m.Task != "m001" || m.Cause != "m001" || m.Thread != "pipe001" || m.Trace != "t001" ||
			m.From != "radar" || len(m.To) != 1 || m.To[0] != "oscar" || m.Time.IsZero() || m.Type != "search" ||
			m.Answer.Output.Summary != "found" || m.Answer.Status != envelope.OK || m.Secret != "" {
			t.Errorf("%s is heard as %+v", printed, m)
		}
		if id, err := uuid.Parse(m.ID); err != nil || id.Version() != 7 {
			t.Errorf("%s is called %q; want a name of ours", printed, m.ID)
		}
	}
}

func TestReceivingCLowlKeepsACompleteMessage(t *testing.T) {
	printed := `{"clowl":"0.2","mid":"m9","ts":5,"tid":"t001","pid":"m001","p":"DONE","from":"radar","to":"oscar","cid":"other","body":{"t":"x","d":{"n":1}}}`
	if m := spoken(t, printed); string(m.Raw) != printed || m.ID != "m9" || m.Thread != "other" || m.Time.Unix() != 5 {
		t.Errorf("heard as %s", m.Raw)
	}
}

func TestReceivingCLowlRequestsToOthers(t *testing.T) {
	for _, c := range []struct {
		printed string
		act     envelope.Act
		tie     envelope.Tie
		to      string
		task    envelope.ID // "" for a name of its own
		waits   bool
	}{
		{`{"p":"QRY","to":"user","body":{"t":"question","d":{"text":"which?"}}}`, envelope.Asks, "", "user", "m001", true},
		{`{"p":"QRY","body":{"d":"which?"}}`, envelope.Asks, "", "oscar", "m001", true},
		{`{"p":"INF","to":"muse","body":{"t":"news","d":{"text":"which?"}}}`, envelope.Informs, "", "muse", "m001", false},
		{`{"p":"INF","to":"muse","body":{"t":"news","d":{"text":"which?","expects_reply":true}}}`, envelope.Informs, "", "muse", "m001", true},
		{`{"p":"INF","to":"muse","body":{"t":"news","d":{"text":"which?","task_id":"m7"}}}`, envelope.Informs, "", "muse", "m7", false},
		{`{"p":"INF","to":"muse","pid":"m7","body":{"t":"news","d":{"text":"which?"}}}`, envelope.Informs, "", "muse", "", false},
		{`{"p":"QRY","to":"muse","body":{"t":"review","d":{"text":"which?"}}}`, envelope.Inquires, "", "muse", "m001", true},
		{`{"p":"DLGT","to":"muse","body":{"t":"draft","d":{"delegation_mode":"assist","description":"which?"}}}`, envelope.Delegates, envelope.Assist, "muse", "", false},
		{`{"p":"REQ","to":"muse","body":{"t":"draft","d":{"description":"which?"}}}`, envelope.Requests, "", "muse", "", true},
		{`{"p":"PROG","body":{"d":{"pct":40,"note":"which?"}}}`, envelope.Reports, "", "oscar", "m001", false},
	} {
		m := spoken(t, c.printed)
		if c.task == "" && m.Act != envelope.Informs {
			c.task = envelope.ID(m.ID)
		}
		if m.Act != c.act || m.Tie != c.tie || m.To[0] != c.to || m.Task != c.task || m.WantsReply != c.waits || m.Text != "which?" {
			t.Errorf("%s is heard as %+v", c.printed, m)
		}
		if (m.Act == envelope.Delegates || m.Act == envelope.Requests) && (m.Request.ID != m.Task || m.Request.Agent != "muse" || m.Cause != "m001") {
			t.Errorf("%s asks for %+v", c.printed, m.Request)
		}
	}
}

func TestReceivingCLowlAnApprovalIsTheAnswerOfTheOverseer(t *testing.T) {
	m := spoken(t, `{"p":"INF","to":"oscar","body":{"t":"approve","d":{"text":"good"}}}`)
	if m.Act != envelope.Completes || m.Answer.Output.Summary != "good" || value(string(m.Answer.Output.Extra), "decision") != `"approved"` {
		t.Errorf("heard as %+v", m)
	}
}

func TestReceivingCLowlAnErrorIsTheAnswer(t *testing.T) {
	m := spoken(t, `{"p":"ERR","body":{"d":{"code":"E012","msg":"out of tokens","retry":false}}}`)
	if m.Act != envelope.Fails || m.Task != "m001" || m.Failure.Kind != envelope.BudgetExceeded || m.Answer.Status != envelope.Failed ||
		m.Answer.Error != (envelope.Error{Kind: envelope.BudgetExceeded, Message: "out of tokens"}) {
		t.Errorf("heard as %+v", m)
	}
	if m := spoken(t, `{"p":"ERR","body":{"d":"no idea"}}`); m.Failure.Code != "E009" || m.Failure.Message != "no idea" || !m.Failure.Retry {
		t.Errorf("heard as %+v", m.Failure)
	}
}

func TestReceivingCLowlReadsAnAINLResultAsADone(t *testing.T) {
	m := spoken(t, `{"p":"DONE","body":{"t":"search","d":{"summary":"s","status":"partial","confidence":0.5,"hits":[1],`+
		`"actions":[{"kind":"k","description":"d","status":"executed"}],"ainl":{"cost_used":{"tokens":3,"usd_cents":4}}}}}`)
	a := m.Answer
	if a.Status != envelope.Partial || *a.Confidence != 0.5 || string(a.Output.Extra) != `{"hits":[1]}` || len(a.Output.Actions) != 1 || a.Cost == nil || a.Cost.Tokens != 3 {
		t.Errorf("the answer is %+v", a)
	}
	if m = spoken(t, `{"p":"DONE","body":{"t":"search","d":{"summary":{"a":1}}}}`); value(string(m.Answer.Output.Extra), "result.summary.a") != "1" {
		t.Errorf("the answer is %+v; want it kept although its summary is none", m.Answer)
	}
}

// An agent names a task of AINL by its id.
func TestReceivingCLowlAboutATaskOfAINL(t *testing.T) {
	about := envelope.Task{ID: "t1", Agent: "radar", Requester: "ken", Type: "search"}
	said, findings := dialect.ReceiveAll(envelope.CLowl, []byte(`{"p":"DONE","body":{"d":{"summary":"s"}}}`), about)
	if findings.Refused() || len(said) != 1 || said[0].Task != "t1" || said[0].Cause != "t1" || said[0].Thread != "t1" || said[0].To[0] != "ken" {
		t.Errorf("heard %+v: %v", said, findings)
	}
}

func TestReceivingCLowlSkipsTextThatIsNoMessage(t *testing.T) {
	for _, c := range []struct {
		printed  string
		received int
		finding  string
	}{
		{"", 0, "agent_output_invalid is no message of the agent's dialect"},
		{"I am done.", 0, "agent_output_invalid is no message of the agent's dialect"},
		{`{"summary":"x"}`, 0, "agent_output_invalid is no message of the agent's dialect"},
		{`{"p":"DONE","body":`, 0, "agent_output_invalid is no message of the agent's dialect"},
		{`{"p":"HELLO","body":{"t":"x","d":{}}}`, 0, "agent_output_invalid p: must be one of REQ, INF, ACK, ERR, DLGT, DONE, CNCL, QRY, PROG, CAPS"},
		{`{"p":"DLGT","to":"muse","body":{"t":"x","d":{}}}`, 1, " body.d.delegation_mode: required: that message is left out"},
		{`{"p":"DLGT","to":"muse","body":{"t":"x","d":{"delegation_mode":"both"}}}`, 1, " body.d.delegation_mode: must be transfer, fork or assist: that message is left out"},
		{`{"p":"PROG"}{"p":"DONE"}`, 0, "agent_output_invalid two JSON objects are on one line; each message needs a line of its own"},
		{"{\"p\":\"PROG\"} {\"p\":\"INF\",\"to\":\"x\"}\n{\"p\":\"DONE\"}", 1, " two JSON objects are on one line; each message needs a line of its own: that message is left out"},
		{`{"p":"DLGT","body":{"t":"x","d":{"delegation_mode":"fork"}}}`, 0, "agent_output_invalid to: required"},
		{`{"p":"DONE","from":"muse","body":{"t":"x","d":{}}}`, 0, "agent_identity_mismatch from: the agent speaks as another one"},
		{`{"p":"DLGT","from":"muse","to":"ada","body":{"t":"x","d":{}}}`, 0, "agent_output_invalid body.d.delegation_mode: required"},
		{`{"clowl":"0.3","p":"DONE","body":{"t":"x","d":{}}}`, 0, `unsupported_version clowl: is another version, only "0.2" is supported`},
		{"{\"p\":\"DONE\"}\n{\"p\":\"HELLO\"}\n{\"n\":1}\n{\"p\":\"INF\",\"to\":\"x\"}", 2, " p: must be one of REQ, INF, ACK, ERR, DLGT, DONE, CNCL, QRY, PROG, CAPS: that message is left out"},
		{strings.Repeat("{\"p\":\"PROG\"}\n", 1005), 1000, " is more than 1000 messages: the rest is left out"},
	} {
		said, findings := dialect.ReceiveAll(envelope.CLowl, []byte(c.printed), askedInCLowl(t))
		if len(said) != c.received || findings.Refused() != (c.received == 0) || len(findings) == 0 || string(findings[0].Kind)+" "+findings[0].String() != c.finding {
			t.Errorf("%.80s: %d messages, %v; want %d, %s", c.printed, len(said), findings, c.received, c.finding)
		}
	}
}

// mailboxd reads each form that the prompt shows.
func TestThePromptShowsOnlyFormsThatAreRead(t *testing.T) {
	shown := 0
	for line := range strings.Lines(dialect.Prompt()) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		shown++
		if m := spoken(t, line); m.Act != envelope.Completes || m.Answer.Output.Summary == "" || m.Context.Ref == "" {
			t.Errorf("%s is heard as %+v", line, m)
		}
	}
	if words := len(strings.Fields(dialect.Prompt())); shown != 1 || words > 220 {
		t.Errorf("the prompt shows %d messages in %d words", shown, words)
	}
	for _, taught := range []string{
		`{"p":"ERR","body":{"t":"x","d":{"code":"E009","msg":"<why>","retry":true}}}`,
		`{"p":"PROG","body":{"t":"x","d":{"pct":40,"note":"<what>"}}}`,
		`{"p":"QRY","body":{"t":"x","d":{"text":"<question>"}}}`,
		`{"p":"CNCL","body":{"t":"x","d":{"task_id":"<id>"}}}`,
		`{"p":"DLGT","to":"a","body":{"t":"x","d":{"delegation_mode":"transfer"}}}`,
		`{"p":"CAPS","body":{"t":"x","d":{"supports":["<task>"]}}}`,
	} {
		d := value(taught, "body.d")
		if !strings.Contains(dialect.Prompt(), d) {
			t.Errorf("the prompt does not show %s", d)
		}
		spoken(t, taught)
	}
}
