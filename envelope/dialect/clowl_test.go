package dialect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

func clowl(t testing.TB) dialect.Codec {
	t.Helper()
	c, ok := dialect.Of(envelope.CLowl)
	if !ok {
		t.Fatal("no codec reads CLowl")
	}
	return c
}

// complete is a REQ with nothing left out.
const complete = `{"clowl":"0.2","mid":"m001","ts":1709078400,"tid":"t001","pid":"m000","p":"REQ","from":"oscar","to":"radar",` +
	`"cid":"pipe001","body":{"t":"search","d":{"description":"find it","n":1.50}},` +
	`"ctx":{"ref":"research/a.md","inline":"a","hash":"` + sum + `"},"det":true}`

const sum = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"

// set returns an object with a member replaced, or removed when the value is "".
// A path such as "body.d" leads into it.
func set(t testing.TB, object, path, value string) string {
	t.Helper()
	members := map[string]jsontext.Value{}
	if err := json.Unmarshal([]byte(object), &members, jsontext.AllowInvalidUTF8(true)); err != nil {
		t.Fatal(err)
	}
	name, rest, deeper := strings.Cut(path, ".")
	switch {
	case deeper:
		members[name] = jsontext.Value(set(t, string(members[name]), rest, value))
	case value == "":
		delete(members, name)
	default:
		members[name] = jsontext.Value(value)
	}
	text, err := json.Marshal(members, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// clowlShapes are the rules for one message, one field at a time. Want is the code
// and the field of the first refusal, or "" for none, or "warning".
var clowlShapes = []struct{ rule, path, value, want string }{
	{"CLOWL-02", "clowl", ``, "E001 clowl: required"},
	{"CLOWL-02, row 47", "clowl", `0.2`, `E001 clowl: must be the string "0.2"`},
	{"CLOWL-02", "clowl", `null`, "E001 clowl: required"},
	{"CLOWL-02, row 47", "clowl", `"0.3"`, `E014 clowl: is another version, only "0.2" is supported`},
	{"CLOWL-02", "clowl", `"0.20"`, `E014 clowl: is another version, only "0.2" is supported`},
	{"CLOWL-03", "mid", ``, "E001 mid: required"},
	{"CLOWL-03", "mid", `""`, "E001 mid: must not be empty"},
	{"CLOWL-03", "mid", `7`, "E001 mid: must be a string"},
	{"CLOWL-03", "mid", `"` + strings.Repeat("m", 128) + `"`, ""},
	{"CLOWL-03", "mid", `"` + strings.Repeat("m", 129) + `"`, "E001 mid: is longer than 128 characters"},
	{"CLOWL-03, F12", "mid", `"` + strings.Repeat("\U0001F600", 65) + `"`, "E001 mid: is longer than 128 characters"},
	{"CLOWL-03", "mid", `"a/../b"`, ""},
	{"CLOWL-04", "ts", ``, "E001 ts: required"},
	{"CLOWL-04", "ts", `"1709078400"`, "E001 ts: must be a whole number of seconds since 1970"},
	{"CLOWL-04", "ts", `true`, "E001 ts: must be a whole number of seconds since 1970"},
	{"CLOWL-04", "ts", `1.5`, "E001 ts: must be a whole number of seconds since 1970"},
	{"CLOWL-04", "ts", `-1`, "E001 ts: must be a whole number of seconds since 1970"},
	{"CLOWL-04", "ts", `1e400`, "E001 ts: must be a whole number of seconds since 1970"},
	{"CLOWL-04", "ts", `1709078400.0`, ""},
	{"CLOWL-04", "ts", `0`, ""},
	{"CLOWL-04", "ts", `1709078400000`, "E008 ts: must be in seconds, not in milliseconds"},
	{"CLOWL-05", "tid", ``, ""},
	{"CLOWL-05", "tid", `7`, "E001 tid: must be a string"},
	{"CLOWL-06", "pid", `null`, ""},
	{"CLOWL-06", "pid", ``, ""},
	{"CLOWL-07", "p", `"req"`, "E001 p: must be one of REQ, INF, ACK, ERR, DLGT, DONE, CNCL, QRY, PROG, CAPS"},
	{"CLOWL-07", "p", `""`, "E001 p: must be one of REQ, INF, ACK, ERR, DLGT, DONE, CNCL, QRY, PROG, CAPS"},
	{"CLOWL-07", "p", `1`, "E001 p: must be a string"},
	{"CLOWL-07", "p", ``, "E001 p: required"},
	{"CLOWL-08", "from", ``, "E001 from: required"},
	{"CLOWL-08, row 47", "from", `"*"`, `E001 from: must not be "*"`},
	{"CLOWL-08", "from", `"a\u202eb"`, "E001 from: contains a control or invisible character"},
	{"CLOWL-09", "to", ``, "E001 to: required"},
	{"CLOWL-09, row 47", "to", `[]`, "E001 to: must not be empty"},
	{"CLOWL-09", "to", `""`, "E001 to: must not be empty"},
	{"CLOWL-09, row 47", "to", `["*","a"]`, `E008 to[0]: must not be "*" among others`},
	{"CLOWL-09", "to", `["a",7]`, "E001 to[1]: must be a string"},
	{"CLOWL-09", "to", `["a","b","a"]`, ""},
	{"CLOWL-09", "to", `"*"`, ""},
	{"CLOWL-09", "to", `{}`, "E001 to: must be a list"},
	{"CLOWL-10", "cid", ``, "E001 cid: required"},
	{"CLOWL-11", "body", ``, "E001 body: required"},
	{"CLOWL-11", "body", `"x"`, "E001 body: must be an object"},
	{"CLOWL-11", "body.t", ``, "E001 body.t: required"},
	{"CLOWL-11", "body.t", `""`, "E001 body.t: must not be empty"},
	{"CLOWL-11", "body.t", `"x-anything at all"`, ""},
	{"CLOWL-12", "body.d", ``, "E001 body.d: required"},
	{"CLOWL-12", "body.d", `[]`, "E001 body.d: must be an object"},
	{"CLOWL-12", "body.d", `{}`, ""},
	{"CLOWL-12", "body.more", `1`, "warning body.more: is not a field we know"},
	{"CLOWL-13", "ctx", `null`, ""},
	{"CLOWL-13", "ctx", `{"ref":null,"inline":null,"hash":null}`, ""},
	{"CLOWL-13", "ctx", `"a.md"`, "E001 ctx: must be an object"},
	{"CLOWL-13", "ctx.ref", `7`, "E001 ctx.ref: must be a string"},
	{"CLOWL-13", "ctx.more", `7`, "warning ctx.more: is not a field we know"},
	{"CLOWL-15", "ctx.inline", `"` + strings.Repeat("a", 2000) + `"`, ""},
	{"CLOWL-15", "ctx.inline", `"` + strings.Repeat("a", 2001) + `"`, "E008 ctx.inline: is longer than 2000 characters"},
	{"CLOWL-15", "ctx.inline", `"` + strings.Repeat("\U0001F600", 1000) + `"`, ""},
	{"CLOWL-15", "ctx.inline", `"` + strings.Repeat("\U0001F600", 1001) + `"`, "E008 ctx.inline: is longer than 2000 characters"},
	{"CLOWL-16, row 47", "ctx.hash", `"` + strings.ToUpper(sum) + `"`, "E001 ctx.hash: must be the SHA-256 of what is at ref, in 64 lower-case hexadecimal digits"},
	{"CLOWL-16", "ctx.hash", `"abc"`, "E001 ctx.hash: must be the SHA-256 of what is at ref, in 64 lower-case hexadecimal digits"},
	{"CLOWL-16", "ctx.hash", `""`, "E001 ctx.hash: must be the SHA-256 of what is at ref, in 64 lower-case hexadecimal digits"},
	{"CLOWL-17", "ctx.ref", `null`, "warning ctx.hash: is of nothing without a ref: ignored"},
	{"CLOWL-18", "auth", `7`, "E001 auth: must be a string"},
	{"CLOWL-19", "det", `"yes"`, "E001 det: must be true or false"},
	{"CLOWL-20", "more", `1`, "warning more: is not a field we know"},
	{"AINL-45", "body.d.deadline", `"tomorrow"`, `E008 body.d.deadline: must be a time with a zone such as "2026-03-09T23:00:00Z", not "tomorrow"`},
	{"AINL-46", "body.d.ainl", `{"budget_limit":{"tokens":-1}}`, "E008 body.d.ainl.budget_limit.tokens: must be a whole number, 0 or more"},
	{"AINL-48", "body.d.ainl", `{"approval_required":"perhaps"}`, `E008 body.d.ainl.approval_required: must be "none", "pre", "post" or "both"`},
	{"AINL-51", "body.d.ainl", `{"callback":{"file_append":"../x"}}`, "E016 body.d.ainl.callback.file_append: must stay below the root"},
	{"AINL-53", "body.d.ainl", `{"metadata":{"mbx.run_id":"x"}}`, `warning body.d.ainl.metadata["mbx.run_id"]: only mailboxd sets it: left out`},
	{"row 23", "body.d.ainl", `{"metadata":{"mbx.workdir":"/src","k":1}}`, `warning body.d.ainl.metadata["mbx.workdir"]: is for AINL lines only: left out`},
	{"AINL-41", "body.d.ainl", `[]`, "E008 body.d.ainl: must be an object"},
	{"AINL-41", "body.d.ainl", `{"task_id":"x"}`, "warning body.d.ainl.task_id: is not a field we know"},
}

func TestCLowlReadsEachFieldAsItsRuleSays(t *testing.T) {
	for _, c := range clowlShapes {
		line := set(t, complete, c.path, c.value)
		_, findings := clowl(t).Decode([]byte(line), envelope.Strict)
		if got := firstFinding(findings); got != c.want {
			t.Errorf("%s: %s %s: %q; want %q", c.rule, c.path, c.value, got, c.want)
		}
	}
}

// firstFinding is the first refusal with its code, else the first warning.
func firstFinding(findings envelope.Findings) string {
	if refusals := findings.Refusals(); len(refusals) > 0 {
		code, _, _ := dialect.Code(refusals[0].Kind)
		return code + " " + refusals[0].String()
	}
	if len(findings) > 0 {
		return "warning " + findings[0].String()
	}
	return ""
}

func TestCLowlReadsTheMessagesOfItsSpecification(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "clowl-v0.2.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var acts []envelope.Act
	for line := range strings.Lines(string(text)) {
		m, findings := clowl(t).Decode([]byte(line), envelope.Strict)
		if len(findings.Refusals()) > 0 {
			t.Errorf("%s: %v", line, findings)
		}
		acts = append(acts, m.Act)
	}
	if len(acts) != 3 || acts[0] != envelope.Delegates || acts[1] != envelope.Announces || acts[2] != envelope.Fails {
		t.Errorf("they are %v", acts)
	}
}

// performed are messages by what they are in the canonical form.
var performed = []struct {
	p, t, d string
	want    envelope.Act
	code    string
}{
	{"REQ", "search", `{}`, envelope.Requests, ""},
	{"INF", "news", `{"text":"x"}`, envelope.Informs, ""},
	{"INF", "status", `{"state":"running"}`, envelope.ReportsStatus, ""},
	{"ACK", "search", `{}`, envelope.Accepts, ""},
	{"ACK", "cancel", `{"status":"cancelled"}`, envelope.Stops, ""},
	{"ERR", "error", `{"code":"E003","msg":"x","retry":true}`, envelope.Fails, ""},
	{"DLGT", "analyze", `{"delegation_mode":"transfer"}`, envelope.Delegates, ""},
	{"DLGT", "analyze", `{}`, envelope.Delegates, "E008 body.d.delegation_mode: required"},
	{"DLGT", "analyze", `{"delegation_mode":"oversee"}`, envelope.Delegates, "E008 body.d.delegation_mode: must be transfer, fork or assist"},
	{"DLGT", "analyze", `{"delegation_mode":7}`, envelope.Delegates, "E008 body.d.delegation_mode: must be transfer, fork or assist"},
	{"DONE", "search", `{"summary":"x"}`, envelope.Completes, ""},
	{"CNCL", "search", `{}`, envelope.Cancels, ""},
	{"QRY", "status", `{}`, envelope.Asks, ""},
	{"QRY", "review", `{"text":"why?"}`, envelope.Inquires, ""},
	{"QRY", "review", `{"delegation_mode":"oversee"}`, envelope.Delegates, ""},
	{"PROG", "search", `{"pct":40,"note":"x"}`, envelope.Reports, ""},
	{"PROG", "search", `{"blocked":["approval"]}`, envelope.Waits, ""},
	{"PROG", "search", `{"blocked":[]}`, envelope.Reports, ""},
	{"CAPS", "capabilities", `{"supports":["search:web"],"clowl":"0.2"}`, envelope.Announces, ""},
	{"CAPS", "capabilities", `{"supports":"search"}`, envelope.Announces, "E008 body.d.supports: must be a list of what you take"},
}

func TestCLowlPerformativesAreActs(t *testing.T) {
	for _, c := range performed {
		m, findings := clowl(t).Decode([]byte(performing(t, c.p, c.t, c.d)), envelope.Strict)
		if got := firstFinding(findings.Refusals()); m.Act != c.want || got != c.code {
			t.Errorf("%s %s %s is %q, %q; want %q, %q", c.p, c.t, c.d, m.Act, got, c.want, c.code)
		}
	}
}

func performing(t testing.TB, p, kind, d string) string {
	line := set(t, complete, "p", `"`+p+`"`)
	return set(t, set(t, line, "body.t", `"`+kind+`"`), "body.d", d)
}

func TestCLowlDelegatingToOneselfIsACycle(t *testing.T) {
	line := set(t, performing(t, "DLGT", "x", `{"delegation_mode":"fork"}`), "to", `["radar","oscar"]`)
	_, findings := clowl(t).Decode([]byte(line), envelope.Strict)
	if got := firstFinding(findings); got != "E015 to: must not be who delegates" {
		t.Errorf("findings are %q", got)
	}
}

func TestCLowlReadsAllOfAMessage(t *testing.T) {
	m, findings := clowl(t).Decode([]byte(" "+complete+"\r\n"), envelope.Strict)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	if string(m.Raw) != complete || m.Dialect != envelope.CLowl || m.ID != "m001" || m.Task != "m001" || m.Cause != "m000" ||
		m.Thread != "pipe001" || m.Trace != "t001" || m.From != "oscar" || len(m.To) != 1 || m.To[0] != "radar" ||
		m.Time.Unix() != 1709078400 || m.Type != "search" || m.Text != "find it" || !m.Deterministic ||
		m.Context != (envelope.Context{Ref: "research/a.md", Inline: "a", Hash: sum}) {
		t.Errorf("read as %+v", m)
	}
	r := m.Request
	if string(r.Raw) != complete || r.Hash != m.Hash || r.ID != "m001" || r.Requester != "oscar" || r.Agent != "radar" || r.Role != "" ||
		r.Type != "search" || r.Description != "find it" || string(r.Payload) != `{"description":"find it","n":1.50}` ||
		len(r.Refs) != 1 || r.Refs[0] != (envelope.Ref{Kind: "file", URI: "file://research/a.md"}) {
		t.Errorf("it asks for %+v", r)
	}
}

func TestCLowlNamesATaskByADigestWhereItsMidIsNoFileName(t *testing.T) {
	m, findings := clowl(t).Decode([]byte(set(t, complete, "mid", `"a/b"`)), envelope.Strict)
	if findings.Refused() || m.ID != "a/b" || m.Task != dialect.TaskID("a/b") || m.Request.ID != m.Task || len(m.Task) != 34 {
		t.Errorf("task %q of message %q: %v", m.Task, m.ID, findings)
	}
}

func TestACLowlRequestToSeveralNamesNoAgent(t *testing.T) {
	for _, to := range []string{`["a","b"]`, `"*"`} {
		m, findings := clowl(t).Decode([]byte(set(t, complete, "to", to)), envelope.Strict)
		if findings.Refused() || m.Request.Agent != "" {
			t.Errorf("to %s: the request is for %q: %v", to, m.Request.Agent, findings)
		}
	}
}

func TestCLowlNamesTheSenderOfABrokenLine(t *testing.T) {
	for _, line := range []string{complete[:len(complete)-8], strings.Replace(complete, `"det":true`, `"det":true,}`, 1), `{"mid":"m001","mid":"m001",` + complete[1:]} {
		m, findings := clowl(t).Decode([]byte(line), envelope.Strict)
		if code, _, retry := dialect.Code(findings.Kind()); code != "E001" || !retry || m.From != "oscar" || m.ID != "m001" || m.Thread != "pipe001" {
			t.Errorf("%s: %v, message %q of %q", line, findings, m.ID, m.From)
		}
	}
}

// Every field of AINL that limits a task does so when it comes in CLowl.
func TestCLowlCarriesThePolicyOfAINL(t *testing.T) {
	ainl := `{"target_role":"planner","approval_required":"both","human_approver":"ann","budget_limit":{"tokens":5,"usd_cents":7},` +
		`"allowed_tools":["a"],"required_output_contract":{"format":"json","schema_ref":"s","must_include_fields":["f"]},` +
		`"sensitivity":"restricted","callback":{"queue":"q","file_append":"agents/x/y.jsonl"},"deadline":"2030-01-02T03:04:05Z",` +
		`"policy_context":{"environment":"prod","change_window":"2030-01-01T00:00:00Z/PT1H"},` +
		`"metadata":{"mbx.parent_task_id":"p","k":1},"refs":[{"kind":"k","uri":"file://b"}]}`
	m, findings := clowl(t).Decode([]byte(set(t, complete, "body.d.ainl", ainl)), envelope.Strict)
	if findings.Refused() {
		t.Fatal(findings)
	}
	line, _ := ainlCodec(t).Encode(m)
	want, findings := envelope.DecodeTask([]byte(set(t, string(line), "metadata", `{"mbx.parent_task_id":"p","k":1}`)), envelope.Strict)
	if findings.Refused() {
		t.Fatal(findings)
	}
	got := m.Request
	if got.Role != "planner" || got.Approval != envelope.ApprovalBoth || got.HumanApprover != "ann" || *got.Budget.Tokens != 5 ||
		*got.Budget.USDCents != 7 || len(got.AllowedTools) != 1 || got.Contract == nil || got.Contract.SchemaRef != "s" ||
		got.Sensitivity != envelope.Restricted || got.Callback.Queue != "q" || got.Callback.FileAppend != "agents/x/y.jsonl" ||
		got.Deadline.Year() != 2030 || got.Environment != "prod" || len(got.ChangeWindows) != 1 || got.Named(envelope.ParentTask) != "p" || len(got.Refs) != 2 {
		t.Errorf("the request is %+v", got)
	}
	sameLimits(t, got, want)
}

func TestCLowlRedactsTheSecretInAllThatIsKept(t *testing.T) {
	open, _ := clowl(t).Decode([]byte(complete), envelope.Strict)
	for name, line := range map[string]string{
		"whole":      set(t, complete, "auth", `"s3cret"`),
		"escaped":    strings.Replace(complete, `"det"`, `"\u0061uth" : "s3cret", "det"`, 1),
		"cut off":    `{"clowl":"0.2","from":"oscar","auth":"s3cret`,
		"twice":      `{"auth":"s3cret","auth":"s3cret",` + complete[1:],
		"an object":  set(t, complete, "auth", `{"a":["s3cret"]}`),
		"the end of": `"x":1},"auth":"s3cret"}`,
	} {
		m, findings := clowl(t).Decode([]byte(line), envelope.Strict)
		if strings.Contains(string(m.Raw)+string(m.Request.Raw)+string(m.Extra)+string(m.Data)+findings.String(), "s3cret") {
			t.Errorf("%s: it is still in %s", name, m.Raw)
		}
		if name == "whole" || name == "escaped" {
			again, _ := clowl(t).Decode(m.Raw, envelope.Strict)
			if m.Secret != "s3cret" || findings.Refused() || again.Hash != m.Hash || again.Secret != "" || m.Hash == open.Hash {
				t.Errorf("%s: secret %q, hashes %s, %s, %s: %v", name, m.Secret, m.Hash, again.Hash, open.Hash, findings)
			}
		}
	}
	inside, _ := clowl(t).Decode([]byte(set(t, complete, "body.d.auth", `"mine"`)), envelope.Strict)
	if !strings.Contains(string(inside.Raw), "mine") || inside.Secret != "" {
		t.Errorf("what d has under that name is the sender's: %s", inside.Raw)
	}
}

// It must not cost more for each of them than for the one before.
func TestCLowlKeepsManyUnknownMembers(t *testing.T) {
	reading := func(unknown int) float64 {
		line := []byte(`{"clowl":"0.2","mid":"m","ts":1,"p":"REQ","from":"a","to":"b","cid":"c","body":{"t":"x","d":{}}`)
		for n := range unknown {
			line = fmt.Appendf(line, `,"x%d":1`, n)
		}
		line = append(line, '}')
		return testing.AllocsPerRun(1, func() { dialect.Read(line, envelope.Strict) })
	}
	if few, many := reading(100), reading(1000); many > 20*few {
		t.Errorf("reading 1000 such members allocates %g times, and 100 of them %g times; want ten times as often", many, few)
	}
}
