package agent_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
)

const (
	asksCLowl = `{"clowl":"0.2","mid":"m1","ts":1709078400,"tid":"trace","p":"REQ","from":"planner","to":"tester","cid":"pipe","body":{"t":"check","d":{"hours":24}}}`
	asksCAP   = `{"type":"delegation_notice","task_id":"T1","sender_id":"pm-1","recipient_id":"tester","context_summary":"Look whether it runs.","attachments":[]}`
)

// asked is a job that was asked for in a dialect.
func asked(t testing.TB, line string) task.Job {
	t.Helper()
	j := jobFor(t, request(""))
	task, findings := dialect.DecodeTask(envelope.MarkedAs([]byte(line)), []byte(line), envelope.Strict)
	if findings.Refused() {
		t.Fatalf("%s is refused: %v", line, findings)
	}
	j.Task = task
	return j
}

// speaking is an agent of a dialect that prints a text.
func speaking(t testing.TB, d envelope.Dialect, text string) *agent.Agent {
	t.Helper()
	b := printing(t, text, 0)
	b.Dialect = d
	return bound(t, b)
}

// words returns the sender, the act and the recipient of each message.
func words(said []envelope.Message) string {
	var list []string
	for _, m := range said {
		list = append(list, fmt.Sprint(m.Act, m.Tie, " to ", strings.Join(m.To, ",")))
	}
	return strings.Join(list, "; ")
}

func TestAnAgentAnswersInCLowlHoweverItWasTaughtTo(t *testing.T) {
	for name, text := range map[string]string{
		"v0.2":    `{"clowl":"0.2","mid":"m2","ts":1709078401,"tid":"trace","pid":"m1","p":"DONE","from":"tester","to":"planner","cid":"pipe","body":{"t":"check","d":{"summary":"It runs.","uptime":7}}}`,
		"v0.1":    `{"cl":"0.1","mid":"x","p":"DONE","from":"tester","to":"planner","cid":"pipe","body":{"t":"check","d":{"summary":"It runs.","uptime":7}},"ctx":""}`,
		"CLowl-S": `{"p":"DONE","from":"tester","to":"planner","task":"check","data":{"summary":"It runs.","uptime":7}}`,
		"fenced":  "```json\n{\"p\":\"DONE\",\"body\":{\"t\":\"check\",\"d\":{\"summary\":\"It runs.\",\"uptime\":7}}}\n```\n",
		"banner":  "\x1b[32mmodel loaded\x1b[0m\n{\"p\":\"DONE\",\"task\":\"check\",\"data\":{\"summary\":\"It runs.\",\"uptime\":7}}\nbye\n",
	} {
		o := speaking(t, envelope.CLowl, text).Run(t.Context(), asked(t, asksCLowl), nil)
		if r := o.Result; r.Status != envelope.OK || r.Output.Summary != "It runs." || !strings.Contains(string(r.Output.Extra), `"uptime":7`) || o.Hold != "" || len(o.Messages) > 0 {
			t.Errorf("%s: %+v, hold %q, said %s", name, r, o.Hold, words(o.Messages))
		}
	}
}

func TestAnAgentAnswersInCAP(t *testing.T) {
	o := speaking(t, envelope.CAP, `{"type":"message","task_id":"T1","sender_id":"tester","recipient_id":"pm-1","content":"It runs.","attachments":[{"type":"text_snippet","text":"7 days"}]}`).
		Run(t.Context(), asked(t, asksCAP), nil)
	if r := o.Result; r.Status != envelope.OK || r.Output.Summary != "It runs." || !strings.Contains(string(r.Output.Extra), `"text":"7 days"`) || o.Hold != "" {
		t.Errorf("%+v, hold %q", r, o.Hold)
	}
	o = speaking(t, envelope.CAP, `{"type":"error_response","error_code":504,"error_message":"MCP timeout."}`).Run(t.Context(), asked(t, asksCAP), nil)
	expect(t, "an error_response", o, envelope.Failed, envelope.Timeout)
}

func TestWhatAnAnswerInAnotherDialectSaysWasSpentCounts(t *testing.T) {
	for d, text := range map[envelope.Dialect]string{
		envelope.CLowl: `{"p":"DONE","body":{"t":"check","d":{"summary":"It runs.","cost_used":{"tokens":70,"usd_cents":3}}}}`,
		envelope.CAP:   `{"content":"It runs.","cost_used":{"tokens":70,"usd_cents":3}}`,
	} {
		o := speaking(t, d, text).Run(t.Context(), jobFor(t, request("")), nil)
		if o.Result.Cost == nil || o.Result.Cost.Tokens != 70 || o.Result.Cost.USDCents != 3 {
			t.Errorf("%s: cost %+v", d, o.Result.Cost)
		}
		o = speaking(t, d, text).Run(t.Context(), jobFor(t, request(`, "budget_limit": {"tokens": 50}`)), nil)
		expect(t, string(d)+" over its budget", o, envelope.Failed, envelope.BudgetExceeded)
	}
}

func TestWhatAnAnswerInAnotherDialectPromisesIsHeld(t *testing.T) {
	const promised = `, "required_output_contract": {"format": "json", "must_include_fields": ["uptime"]}`
	for _, c := range []struct {
		text string
		kind envelope.Kind
	}{
		{`{"p":"DONE","body":{"t":"check","d":{"summary":"It runs.","uptime":7}}}`, ""},
		{`{"p":"DONE","body":{"t":"check","d":{"summary":"It runs."}}}`, envelope.ContractViolation},
		{`{"p":"QRY","to":"radar","task":"search","data":{}}`, ""}, // no answer yet
	} {
		o := speaking(t, envelope.CLowl, c.text).Run(t.Context(), jobFor(t, request(promised)), nil)
		if o.Result.Error.Kind != c.kind {
			t.Errorf("%s: %+v, want %q", c.text, o.Result.Error, c.kind)
		}
	}
}

func TestAnAgentOfOneDialectIsAskedInAnother(t *testing.T) {
	done := `{"p":"DONE","body":{"t":"check","d":{"summary":"It runs."}}}`
	for _, j := range []task.Job{jobFor(t, request("")), asked(t, asksCAP)} {
		o := speaking(t, envelope.CLowl, done).Run(t.Context(), j, nil)
		expect(t, string(j.Task.Raw), o, envelope.OK, "")
	}
	o := speaking(t, envelope.CAP, `{"content":"It runs."}`).Run(t.Context(), asked(t, asksCLowl), nil)
	expect(t, asksCLowl, o, envelope.OK, "")
	o = speaking(t, envelope.AINL, `{"summary":"It runs."}`).Run(t.Context(), asked(t, asksCLowl), nil)
	expect(t, "AINL for "+asksCLowl, o, envelope.OK, "")
}

func TestWhatAnAgentSaysDecidesWhatItsTaskWaitsFor(t *testing.T) {
	const (
		done     = `{"type":"message","content":"It runs."}` + "\n"
		late     = `{"type":"error_response","error_code":504,"error_message":"late"}` + "\n"
		handover = `{"type":"delegation_notice","task_id":"T1.1","recipient_id":"analyst-1","context_summary":"dig"}` + "\n"
		question = `{"type":"message","recipient_id":"user","content":"Which one?"}` + "\n"
		back     = `{"type":"message","content":"Which one?","expects_reply":true}` + "\n"
		maybe    = `{"type":"message","content":"Which one?"}` + "\n"
		inquiry  = `{"type":"oversight_inquiry","content":"Why?","inquiry":"Why?"}` + "\n"
		advice   = `{"type":"message","task_id":"T1.1","recipient_id":"analyst-1","content":"Yes."}` + "\n"
	)
	for _, c := range []struct {
		text   string
		status envelope.Status
		kind   envelope.Kind
		hold   task.Reason
		said   string
	}{
		{done, envelope.OK, "", "", ""},
		{late, envelope.Failed, envelope.Timeout, "", ""},
		{late + done, envelope.OK, "", "", "info to pm-1"},
		{handover, envelope.Partial, "", task.Children, "task.delegatedassist to analyst-1"},
		{handover + question, envelope.Partial, "", task.Children, "task.delegatedassist to analyst-1; info to user"},
		{handover + done, envelope.OK, "", "", "task.delegatedfork to analyst-1"},
		{question, envelope.Partial, "", task.Reply, "info to user"},
		{back, envelope.Partial, "", task.Reply, "info to pm-1"},
		{maybe, envelope.Partial, "", task.Reply, "info to pm-1"},
		{done + maybe, envelope.Partial, "", task.Reply, "info to pm-1; info to pm-1"},
		{maybe + done, envelope.OK, "", "", "info to pm-1"},
		{handover + maybe, envelope.Partial, "", task.Children, "task.delegatedassist to analyst-1; info to pm-1"},
		{inquiry, envelope.Partial, "", task.Reply, "review.inquiry to pm-1"},
		{advice, envelope.Partial, "", task.Reply, "info to analyst-1"},
		{question + done, envelope.OK, "", "", "info to user"},
		{"I have no idea.", envelope.Failed, envelope.OutputInvalid, "", ""},
		{"", envelope.Failed, envelope.OutputInvalid, "", ""},
		{`{"summary":"not my dialect"}`, envelope.Failed, envelope.OutputInvalid, "", ""},
		{`{"type":"message","sender_id":"qa-1","content":"Verified."}`, envelope.Failed, envelope.IdentityMismatch, "", ""},
		{`{"type":"message","task_id":"T1","content":7}`, envelope.Failed, envelope.OutputInvalid, "", ""},
	} {
		o := speaking(t, envelope.CAP, c.text).Run(t.Context(), asked(t, asksCAP), nil)
		if o.Result.Status != c.status || o.Result.Error.Kind != c.kind || o.Hold != c.hold || words(o.Messages) != c.said || o.Retry {
			t.Errorf("%s\n%s %+v, hold %q, said %s; want %s %s, hold %q, said %s",
				c.text, o.Result.Status, o.Result.Error, o.Hold, words(o.Messages), c.status, c.kind, c.hold, c.said)
		}
	}
}

func TestWhatIsSaidInCLowlDecidesToo(t *testing.T) {
	delegates := func(mode string) string {
		return `{"p":"DLGT","to":"muse","body":{"t":"analyze","d":{"delegation_mode":"` + mode + `"}}}` + "\n"
	}
	const done = `{"p":"DONE","body":{"t":"check","d":{"summary":"It runs."}}}` + "\n"
	for _, c := range []struct {
		text string
		hold task.Reason
		said string
	}{
		{delegates("transfer"), task.Children, "task.delegatedtransfer to muse"},
		{delegates("assist"), task.Children, "task.delegatedassist to muse"},
		{delegates("fork") + done, "", "task.delegatedfork to muse"},
		{delegates("transfer") + done, "", "task.delegatedfork to muse"},
		{`{"p":"ACK"}` + "\n" + `{"p":"PROG","data":{"pct":50}}` + "\n" + done, "", "task.accepted to planner; task.progress to planner"},
		{`{"p":"QRY","to":"radar","task":"search","data":{}}`, task.Reply, "status.query to radar"},
		{`{"p":"INF","to":"radar","task":"note","data":{"text":"?"}}`, task.Reply, "info to radar"},
	} {
		o := speaking(t, envelope.CLowl, c.text).Run(t.Context(), asked(t, asksCLowl), nil)
		if o.Result.Status == envelope.Failed || o.Hold != c.hold || words(o.Messages) != c.said {
			t.Errorf("%s\n%+v, hold %q, said %s; want hold %q, said %s", c.text, o.Result.Error, o.Hold, words(o.Messages), c.hold, c.said)
		}
	}
	for _, text := range []string{delegates("fork"), `{"p":"PROG","data":{"pct":50}}`, `{"p":"INF","task":"note","data":{}}`} {
		o := speaking(t, envelope.CLowl, text).Run(t.Context(), asked(t, asksCLowl), nil)
		expect(t, text, o, envelope.Failed, envelope.OutputInvalid)
		if len(o.Messages) > 0 || o.Hold != "" {
			t.Errorf("%s: hold %q, said %s", text, o.Hold, words(o.Messages))
		}
	}
}

func TestWhatARunSaidThatWentWrongHasNoEffect(t *testing.T) {
	b := printing(t, `{"type":"delegation_notice","task_id":"T1.1","recipient_id":"analyst-1","context_summary":"dig"}`, 3)
	b.Dialect = envelope.CAP
	o := bound(t, b).Run(t.Context(), asked(t, asksCAP), nil)
	expect(t, "a run that broke", o, envelope.Failed, envelope.AgentCrashed)
	if o.Hold != "" || len(o.Messages) > 0 {
		t.Errorf("hold %q, said %s", o.Hold, words(o.Messages))
	}
}

func TestAMessageThatIsNotUnderstoodBesideAnAnswerIsForAPersonToSee(t *testing.T) {
	o := speaking(t, envelope.CAP, `{"type":"delegation_notice","sender_id":"tester","task_id":"T1.1","context_summary":"dig"}
{"type":"oversight_inquiry","sender_id":"tester","task_id":"T1.1","recipient_id":"qa","inquiry":7}
{"content":"It runs."}`).Run(t.Context(), asked(t, asksCAP), nil)
	if !o.Result.Review.Required || !strings.Contains(o.Result.Review.Reason, "inquiry: must be a string") {
		t.Errorf("review %+v", o.Result.Review)
	}
}

func overseen(t testing.TB, text string) *agent.Agent {
	t.Helper()
	b := printing(t, text, 0)
	b.Dialect = envelope.CAP
	b.Definition = &dialect.Definition{
		ID: "tester", SystemPrompt: "You test.", AllowedAgents: []string{"qa-1"}, Rules: map[string]string{"qa-1": "When it is done."},
		Overseer: "qa-1", Bindings: []dialect.MCPBinding{{Server: "DataServer", Tools: []string{"query_data"}}},
	}
	return bound(t, b)
}

func TestWorkHandedToTheOverseerIsTheAnswer(t *testing.T) {
	o := overseen(t, `{"type":"delegation_notice","task_id":"T1.1","recipient_id":"qa-1","context_summary":"Analysis complete.","attachments":[{"type":"text_snippet","text":"7"}]}`).
		Run(t.Context(), asked(t, asksCAP), nil)
	if r := o.Result; r.Status != envelope.OK || r.Output.Summary != "Analysis complete." || !strings.Contains(string(r.Output.Extra), `"text":"7"`) {
		t.Errorf("the answer is %+v", r)
	}
	if words(o.Messages) != "task.delegatedoversee to qa-1" || o.Messages[0].Task != "T1.1" || o.Hold != "" {
		t.Errorf("hold %q, said %s", o.Hold, words(o.Messages))
	}
}

// An answer that an agent takes back is no message to its requester, or it would
// be there before anybody approved of it (CAP-24).
func TestAnAnswerThatWasTakenBackIsNotToldPastTheOverseer(t *testing.T) {
	for name, last := range map[string]string{
		"a better one": `{"content":"It runs well."}`,
		"a failure":    `{"type":"error_response","error_code":500,"error_message":"no luck"}`,
	} {
		o := overseen(t, `{"content":"It runs."}`+"\n"+last).Run(t.Context(), asked(t, asksCAP), nil)
		if len(o.Messages) > 0 {
			t.Errorf("%s: said %s; want nothing but the answer", name, words(o.Messages))
		}
	}
}

func TestOnlyResultsOfBoundToolsAreHandedOver(t *testing.T) {
	const text = `{"content":"It runs.","attachments":[{"type":"tool_call_result","server_id":"DataServer","tool":"%s","result":1}]}`
	o := overseen(t, fmt.Sprintf(text, "query_data")).Run(t.Context(), asked(t, asksCAP), nil)
	expect(t, "a bound tool", o, envelope.OK, "")
	o = overseen(t, fmt.Sprintf(text, "drop_data")).Run(t.Context(), asked(t, asksCAP), nil)
	expect(t, "another tool", o, envelope.Failed, envelope.PolicyViolation)
	if !strings.Contains(o.Result.Error.Message, "mcp:DataServer/drop_data") {
		t.Errorf("the message is %q", o.Result.Error.Message)
	}
}

func TestAFileThatAnAgentHandsOverIsAnArtifact(t *testing.T) {
	b := playing(t, "hand over")
	b.Dialect = envelope.CAP
	j := asked(t, asksCAP)
	o := bound(t, b).Run(t.Context(), j, nil)
	want := envelope.Ref{Kind: "file", URI: "file://" + j.Dir + "/my%20report.md"}
	if !slices.Contains(o.Result.Artifacts, want) || !strings.Contains(o.Result.Review.Reason, "/etc/passwd") {
		t.Errorf("artifacts %v, review %+v; want %v and a word on the other", o.Result.Artifacts, o.Result.Review, want)
	}
}

// handOver writes a report and hands it over, with a file that is not its own.
func handOver([]string) {
	if err := os.WriteFile("my report.md", []byte("It runs."), 0o600); err != nil {
		panic(err)
	}
	fmt.Println(`{"content":"It runs.","attachments":[{"type":"file","path":"my report.md"},{"type":"file","path":"/etc/passwd"}]}`)
}

func TestAProgramOfAProfileSpeaksInItsText(t *testing.T) {
	text := "Sure:\n```json\n{\"p\":\"DLGT\",\"to\":\"muse\",\"body\":{\"t\":\"analyze\",\"d\":{\"delegation_mode\":\"assist\"}}}\n```"
	event, err := json.Marshal(map[string]any{"type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": "s7", "total_cost_usd": 0.02, "usage": map[string]int{"input_tokens": 5, "output_tokens": 2}})
	if err != nil {
		t.Fatal(err)
	}
	b := printing(t, string(event)+"\n", 0)
	b.Dialect, b.Output = envelope.CLowl, agent.Claude
	o := bound(t, b).Run(t.Context(), asked(t, asksCLowl), nil)
	if o.Hold != task.Children || words(o.Messages) != "task.delegatedassist to muse" || o.Result.Cost == nil || o.Result.Cost.Tokens != 7 || o.Result.Cost.USDCents != 2 {
		t.Errorf("hold %q, said %s, cost %+v, error %+v", o.Hold, words(o.Messages), o.Result.Cost, o.Result.Error)
	}
	if !strings.Contains(string(o.Result.Output.Extra), `"session_id":"s7"`) {
		t.Errorf("the output is %s", o.Result.Output.Extra)
	}
}

func TestAQuestionToWhoeverAskedIsTheAnswerToWhichNobodyReplies(t *testing.T) {
	const asks = `{"type":"message","content":"Which one?","attachments":[{"type":"text_snippet","text":"two of them"}]%s}`
	for more, want := range map[string]envelope.Status{"": envelope.OK, `,"expects_reply":true`: ""} {
		o := speaking(t, envelope.CAP, fmt.Sprintf(asks, more)).Run(t.Context(), asked(t, asksCAP), nil)
		r := o.Unanswered
		if o.Hold != task.Reply || r.Status != want {
			t.Errorf("%s: hold %q, unanswered %q; want it to wait, then %q", more, o.Hold, r.Status, want)
		}
		if want != "" && (r.Output.Summary != "Which one?" || !strings.Contains(string(r.Output.Extra), "two of them") || r.TaskID != "T1" || r.AgentID != "tester") {
			t.Errorf("unanswered, it is %+v; want the question with its attachments", r)
		}
	}
}
