package dialect_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/testtools/strict"
)

// saidInCLowl encodes a message and holds the line to the protocol.
func saidInCLowl(t testing.TB, m envelope.Message) (line string, lost []string) {
	t.Helper()
	text, lost := clowl(t).Encode(m)
	if err := strict.CLowl(text); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return string(text), lost
}

// A message that is decoded and encoded is the same message, except for null and unknown
// members, numbers and lists with a simpler form, and the members that every ERR and CAPS has.
func TestEncodingADecodedCLowlMessageLosesNothing(t *testing.T) {
	dice := rand.New(rand.NewPCG(7, 11))
	for range 1000 {
		raw := randomCLowl(dice)
		m, findings := clowl(t).Decode([]byte(raw), envelope.Strict)
		if findings.Refused() {
			t.Fatalf("%s: %v", raw, findings)
		}
		m.Raw, m.Request.Raw = nil, nil
		line, lost := saidInCLowl(t, m)
		if len(lost) > 0 {
			t.Errorf("%s: lost %v", raw, lost)
		}
		plain := plainly(t, raw)
		want, _ := envelope.ContentHash([]byte(plain))
		if got, _ := envelope.ContentHash([]byte(line)); got != want {
			t.Fatalf("%s\nbecame %s\nwant   %s", raw, line, plain)
		}
	}
}

// plainly removes the parts that may differ.
func plainly(t testing.TB, raw string) string {
	raw = strings.ReplaceAll(raw, `"ts":1709078400.0`, `"ts":1709078400`)
	for _, path := range []string{"tid", "pid", "det", "ctx", "ctx.ref", "ctx.inline", "ctx.hash"} {
		for _, empty := range []string{"null", "false", "{}", `""`} {
			if value(raw, path) == empty {
				raw = set(t, raw, path, "")
			}
		}
	}
	if value(raw, "ctx") == "{}" || value(raw, "ctx.ref") == "" && value(raw, "ctx.inline") == "" {
		raw = set(t, raw, "ctx", "")
	}
	return raw
}

// value is what stands at a path of an object, "" for nothing.
func value(object, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		dec := jsontext.NewDecoder(strings.NewReader(object), jsontext.AllowInvalidUTF8(true))
		if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
			return ""
		}
		object = ""
		for dec.PeekKind() != '}' && object == "" {
			member, _ := dec.ReadToken()
			is := member.String() == name
			inner, err := dec.ReadValue()
			if err != nil {
				return ""
			}
			if is {
				object = string(inner)
			}
		}
	}
	return object
}

// randomCLowl is a valid message of any kind.
func randomCLowl(dice *rand.Rand) string {
	pick := func(choices ...string) string { return choices[dice.IntN(len(choices))] }
	text := func() string {
		return pick(`""`, `"x"`, `"a \"b\" \u00e9\n\u2028"`, `"`+strings.Repeat("long ", 40)+`"`, `"\ud83d\ude00"`)
	}
	any := func() string {
		return pick(text(), "null", "true", "1.50", "-0", "1e400", "[1,[2]]", `{"a":{"b":null}}`, `"\ud800"`)
	}
	name := func() string {
		return `"` + pick("a", "b.c", "agent:x", "m001", "h é", strings.Repeat("i", 128)) + `"`
	}
	p := pick("REQ", "INF", "ACK", "ERR", "DLGT", "DONE", "CNCL", "QRY", "PROG", "CAPS")
	kind := pick(`"search"`, `"status"`, `"review"`, `"approve"`, `"x y"`)
	d := []string{}
	add := func(member, value string) { d = append(d, fmt.Sprintf("%q:%s", member, value)) }
	switch p {
	case "ERR":
		kind = `"error"`
		add("code", pick(`"E001"`, `"E016"`, `"E107"`, `"E999"`))
		add("msg", text())
		add("retry", "false")
		if dice.IntN(2) == 0 {
			add("kind", pick(`"internal"`, `"invalid_json"`, `"nonsense"`))
		}
	case "DLGT":
		add("delegation_mode", pick(`"transfer"`, `"fork"`, `"assist"`))
	case "CAPS":
		kind = `"capabilities"`
		add("supports", pick(`[]`, `["search:web","a"]`))
		add("clowl", `"0.2"`)
	case "PROG":
		add(pick("pct", "note", "blocked"), any())
	case "ACK":
		add("status", pick(`"cancelled"`, any()))
	case "DONE":
		add("summary", any())
		add("status", pick(`"ok"`, `"partial"`, any()))
		add("actions", pick("[]", any()))
	}
	if dice.IntN(2) == 0 {
		add("more", any())
		add("text", any())
		add("expects_reply", pick("true", "false", "null"))
		add("description", any())
	}
	dice.Shuffle(len(d), func(i, j int) { d[i], d[j] = d[j], d[i] })
	line := `{"clowl":"0.2","mid":` + name() + `,"ts":` + pick("0", "1709078400", "1709078400.0") + `,"p":"` + p +
		`","from":"oscar","to":` + pick(`"radar"`, `"*"`, `["radar","muse"]`, name()) + `,"cid":` + name() +
		`,"body":{"d":{` + strings.Join(d, ",") + `},"t":` + kind + `}`
	for _, member := range []string{
		`"tid":` + pick(name(), "null"), `"pid":` + pick(name(), "null"), `"det":` + pick("true", "false"),
		`"ctx":` + pick("null", "{}", `{"ref":"a/b.md","inline":null,"hash":"`+sum+`"}`, `{"ref":null,"inline":`+text()+`,"hash":null}`),
	} {
		if dice.IntN(2) == 0 {
			line += "," + member
		}
	}
	return line + "}"
}

func TestCLowlEncodesOnlyWhatEveryReaderAccepts(t *testing.T) {
	m, findings := clowl(t).Decode([]byte(set(t, set(t, set(t, complete, "more", "1"), "body.more", "1"), "auth", `"s3cret"`)), envelope.Strict)
	if findings.Refused() {
		t.Fatal(findings)
	}
	if line, lost := saidInCLowl(t, m); strings.Contains(line, "more") || strings.Contains(line, "s3cret") || !slices.Equal(lost, []string{"unknown fields"}) {
		t.Errorf("said %s, lost %v", line, lost)
	}
	if value(string(m.Extra), "more") != "1" || value(string(m.Extra), "body.more") != "1" {
		t.Errorf("kept %s", m.Extra)
	}
	long := strings.Repeat("x", 200)
	m = envelope.Message{
		Act: envelope.Informs, ID: long, Cause: long, Thread: long, Trace: long, From: long, To: []string{long, "b"}, Text: "a\nb",
		Time:    time.Unix(5, 9e8),
		Context: envelope.Context{Inline: strings.Repeat("\U0001F600", 2500), Hash: strings.ToUpper(sum)},
	}
	line, _ := saidInCLowl(t, m)
	if id := value(line, "mid"); len(id) != 36 || value(line, "pid") != id || value(line, "ts") != "5" || value(line, "ctx.hash") != "" {
		t.Errorf("said %s", line)
	}
}

func TestCLowlNamesAMessageThatHasNoName(t *testing.T) {
	line, _ := saidInCLowl(t, envelope.Message{Act: envelope.Informs, From: "a", To: []string{"b"}})
	id, err := uuid.Parse(strings.Trim(value(line, "mid"), `"`))
	if err != nil || id.Version() != 7 {
		t.Errorf("mid %q, version %v: %v", id, id.Version(), err)
	}
	line, _ = saidInCLowl(t, envelope.Message{Act: envelope.Requests, Task: "t1", From: "a", To: []string{"b"}})
	if value(line, "mid") != `"t1"` {
		t.Errorf("a request is called %s; want its task's name, to be the same each time", value(line, "mid"))
	}
}

// A message of each act has the form of its performative.
func TestCLowlEncodesEveryAct(t *testing.T) {
	at := time.Date(2026, 3, 9, 23, 0, 0, 0, time.UTC)
	base := envelope.Message{ID: "m2", Task: "t1", Cause: "m1", Thread: "c1", Trace: "x1", From: "radar", To: []string{"oscar"}, Time: at, Text: "why"}
	says := func(act envelope.Act, change func(*envelope.Message)) envelope.Message {
		m := base
		m.Act = act
		if change != nil {
			change(&m)
		}
		return m
	}
	done := envelope.Result{Status: envelope.Partial, Output: envelope.Output{Summary: "s", Extra: jsontext.Value(`{"hits":[1]}`)}}
	for _, c := range []struct {
		m    envelope.Message
		p, d string
	}{
		{says(envelope.Accepts, nil), "ACK accepted", `{"text":"why"}`},
		{says(envelope.Stops, nil), "ACK accepted", `{"status":"cancelled","text":"why"}`},
		{says(envelope.Reports, func(m *envelope.Message) { m.Data = jsontext.Value(`{"pct":40,"note":"n"}`) }), "PROG progress", `{"pct":40,"note":"n"}`},
		{says(envelope.Waits, nil), "PROG progress", `{"blocked":true,"note":"why"}`},
		{says(envelope.Waits, func(m *envelope.Message) { m.Data = jsontext.Value(`{"blocked":["approval"]}`) }), "PROG progress", `{"blocked":["approval"]}`},
		{says(envelope.Completes, func(m *envelope.Message) { m.Answer = done }), "DONE result", `{"hits":[1],"status":"partial","summary":"s"}`},
		{says(envelope.Fails, func(m *envelope.Message) { m.Failure = dialect.FailureOf(envelope.BudgetExceeded, "b") }), "ERR error", `{"code":"E012","kind":"budget_exceeded","msg":"b","retry":false}`},
		{says(envelope.Fails, func(m *envelope.Message) { m.Answer.Error.Kind = envelope.RunLost }), "ERR error", `{"code":"E009","kind":"run_lost","msg":"why","retry":true}`},
		{says(envelope.Cancels, nil), "CNCL cancel", `{"text":"why"}`},
		{says(envelope.Delegates, func(m *envelope.Message) { m.Tie = envelope.Assist }), "DLGT task", `{"delegation_mode":"assist","description":"why"}`},
		{says(envelope.Delegates, func(m *envelope.Message) { m.Tie = envelope.Oversee }), "QRY review", `{"delegation_mode":"oversee","description":"why"}`},
		{says(envelope.Inquires, nil), "QRY review", `{"text":"why"}`},
		{says(envelope.Asks, nil), "QRY status", `{"text":"why"}`},
		{says(envelope.Asks, func(m *envelope.Message) { m.Type = "review" }), "QRY status", `{"text":"why"}`},
		{says(envelope.ReportsStatus, func(m *envelope.Message) { m.Data = jsontext.Value(`{"state":"running"}`) }), "INF status", `{"state":"running"}`},
		{says(envelope.Informs, func(m *envelope.Message) { m.WantsReply = true }), "INF info", `{"text":"why","expects_reply":true}`},
		{says(envelope.Announces, func(m *envelope.Message) { m.Supports = []string{"search"} }), "CAPS capabilities", `{"clowl":"0.2","supports":["search"]}`},
		{says(envelope.Requests, nil), "REQ task", `{"description":"why"}`},
	} {
		line, _ := saidInCLowl(t, c.m)
		want, _ := envelope.ContentHash([]byte(c.d))
		got, _ := envelope.ContentHash([]byte(value(line, "body.d")))
		if p := strings.ReplaceAll(value(line, "p")+" "+value(line, "body.t"), `"`, ""); p != c.p || got != want {
			t.Errorf("%s is said %s; want %s %s", c.m.Act, line, c.p, c.d)
		}
		again, findings := clowl(t).Decode([]byte(line), envelope.Strict)
		if findings.Refused() || again.Act != c.m.Act || again.Tie != c.m.Tie || again.Cause != "m1" || again.Trace != "x1" || again.Thread != "c1" {
			t.Errorf("%s is read as %s (%s): %v", line, again.Act, again.Tie, findings)
		}
	}
}

// Each kind of error is encoded with its code, and read as the same kind.
func TestCLowlCarriesTheExactKindOfAnError(t *testing.T) {
	for _, kind := range everyKind(t) {
		f := dialect.FailureOf(kind, "m")
		line, _ := saidInCLowl(t, envelope.Message{Act: envelope.Fails, Cause: "m1", From: "a", To: []string{"b"}, Failure: f})
		m, findings := clowl(t).Decode([]byte(line), envelope.Strict)
		code, _, retry := dialect.Code(kind)
		if len(findings) > 0 || m.Failure.Kind != kind || m.Failure.Code != code || m.Failure.Retry != retry || m.Answer.Error.Kind != kind {
			t.Errorf("%s became %+v: %v", kind, m.Failure, findings)
		}
	}
}

func TestCLowlReadsAnErrorWithoutACodeAsInternal(t *testing.T) {
	m, findings := clowl(t).Decode([]byte(performing(t, "ERR", "search", `{"msg":"x"}`)), envelope.Strict)
	if f := m.Failure; findings.Refused() || f.Code != "E009" || f.Kind != envelope.InternalError || !f.Retry || f.Message != "x" {
		t.Errorf("read as %+v: %v", f, findings)
	}
	if line, _ := saidInCLowl(t, m); value(line, "body.d.code") != `"E009"` || value(line, "body.t") != `"error"` {
		t.Errorf("said again as %s", line)
	}
}
