package dialect_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/testtools/strict"
)

// seeds are lines of every dialect and kind.
func seeds(f *testing.F) (lines []string) {
	for _, d := range dialects {
		for _, m := range everything(f, d) {
			lines = append(lines, string(m.Raw))
		}
	}
	for _, c := range clowlShapes {
		lines = append(lines, set(f, complete, c.path, c.value))
	}
	for _, c := range clutchShapes {
		lines = append(lines, set(f, clutchLine, c.path, c.value))
	}
	return append(lines, clutchLine[:200]+clutchLine, `{"type":"task.result","payload":{"summary":"x"}}`, `{"type":"task.request","to":[{"agent_id":"agent:a"}],"payload":"x"}`, complete[:50]+complete, ainlLine+complete+capLine, set(f, complete, "auth", `"s3cret"`),
		`{"cl":"0.1","p":"DONE","to":"a","body":"x","ctx":"y"}`, `{"p":"DLGT","to":["a"],"task":"x","data":[1],"ctx":{}}`, "```\n{\"p\":\"ERR\"}\n```")
}

// An accepted message reads the same when it is read again, has a safe name, and can be encoded
// in every dialect so that a strict reader accepts it.
func FuzzRead(f *testing.F) {
	for _, line := range seeds(f) {
		f.Add([]byte(line))
	}
	f.Fuzz(readable)
}

func readable(t *testing.T, line []byte) {
	for _, p := range dialect.Read(line, envelope.Strict) {
		if p.Findings.Refused() {
			continue
		}
		m := p.Message
		c, _ := dialect.Of(m.Dialect)
		again, findings := c.Decode(m.Raw, envelope.Strict)
		if findings.Refused() || again.Hash != m.Hash || again.Task != m.Task || again.ID != m.ID || again.Secret != "" {
			t.Fatalf("%s is read again as %+v: %v", m.Raw, again, findings)
		}
		sayable(t, m)
	}
}

// sayable holds what each codec makes of a message to its protocol.
func sayable(t *testing.T, m envelope.Message) {
	t.Helper()
	if m.Task != "" {
		if _, err := envelope.ParseID(string(m.Task)); err != nil {
			t.Fatalf("task %q: %v", m.Task, err)
		}
	}
	m.Extra = nil
	check := map[envelope.Dialect]func([]byte) error{envelope.CLowl: strict.CLowl, envelope.CAP: strict.CAP, envelope.AINL: isAINL(m), envelope.Clutch: strict.Clutch}
	for _, d := range dialects {
		c, _ := dialect.Of(d)
		said, _ := c.Encode(m)
		if err := check[d](said); err != nil {
			t.Fatalf("%s\nis said in %s as\n%s: %v", m.Raw, d, said, err)
		}
	}
}

// isAINL is what AINL's own readers say of a line that says a message.
func isAINL(m envelope.Message) func([]byte) error {
	return func(said []byte) error {
		if bytes.ContainsAny(said, "\r\n") || !jsontext.Value(said).IsValid(jsontext.AllowInvalidUTF8(true)) {
			return errLine
		}
		var findings envelope.Findings
		switch m.Act {
		case envelope.Requests, envelope.Delegates:
			_, findings = envelope.DecodeTask(said, envelope.Strict)
		case envelope.Completes, envelope.Fails, envelope.Stops: // perhaps of no task, and then a note
			_, findings = envelope.DecodeAnswer(said)
		}
		if findings.Refused() {
			return errAINL(findings.String())
		}
		return nil
	}
}

type errAINL string

func (e errAINL) Error() string { return string(e) }

const errLine errAINL = "is no JSON on one line"

// A message from the output of an agent is complete, is about the agent's task or has a name of
// its own, and can be encoded in every dialect.
func FuzzReceiveAll(f *testing.F) {
	for _, line := range seeds(f) {
		f.Add([]byte(line))
		f.Add([]byte("log\n" + line + "\n" + line))
	}
	f.Fuzz(hearable)
}

func hearable(t *testing.T, printed []byte) {
	about := envelope.Task{ID: "m001", Agent: "radar", Requester: "oscar", Type: "search", Raw: []byte(complete)}
	for _, d := range dialects {
		said, findings := dialect.ReceiveAll(d, printed, about)
		if findings.Refused() != (len(said) == 0) {
			t.Fatalf("%d messages: %v", len(said), findings)
		}
		for _, m := range said {
			if m.Dialect != d || m.From != "radar" || m.Hash == "" || len(m.To) == 0 && !(m.Clutch.Routed() && m.Request.ID != "") {
				t.Fatalf("%s is heard as %+v", printed, m)
			}
			if m.Act == envelope.Delegates && d == envelope.CLowl && m.Tie == "" {
				continue // it has no mode, and its sender gets an error
			}
			if check := (map[envelope.Dialect]func([]byte) error{envelope.CLowl: strict.CLowl, envelope.Clutch: strict.Clutch})[d]; check != nil {
				if err := check(m.Raw); err != nil {
					t.Fatalf("%s is kept as %s: %v", printed, m.Raw, err)
				}
			}
			sayable(t, m)
		}
	}
}

// Values that no field expects, put anywhere into messages of any kind: none of
// them does more than have its message refused.
func FuzzValues(f *testing.F) {
	lines := seeds(f)
	values := []string{
		"null", "true", "0", "-1", "1.5", "1e400", "12345678901234567890", `""`, `"*"`, `"x"`, `"a/../b"`, `"\ud800"`, `"\u0000"`, `"\u202e"`,
		"[]", "{}", `[null]`, `["*"]`, `["a","b","a"]`, `[[[]]]`, `{"":{}}`, `"` + strings.Repeat("\U0001F600", 1001) + `"`,
		`"` + strings.Repeat("e\u0301", 130) + `"`, strings.Repeat("[", 130) + strings.Repeat("]", 130), `"2026-03-09T23:59:60Z"`, "",
	}
	paths := []string{
		"", "body", "body.d", "ctx", "body.d.ainl", "body.d.ainl.metadata", "body.d.ainl.callback", "output", "input", "attachments",
		"payload", "payload.constraints", "payload.output", "security.policy", "meta", "meta.ainl", "from", "trace",
	}
	for i := range 500 {
		f.Add(uint16(i*7), uint16(i), uint16(i*3), uint16(i/2))
	}
	f.Fuzz(func(t *testing.T, line, path, member, with uint16) {
		object := lines[int(line)%len(lines)]
		if !jsontext.Value(object).IsValid() || object[0] != '{' {
			t.Skip()
		}
		within := paths[int(path)%len(paths)]
		inner := object
		if within != "" {
			inner, within = value(object, within), within+"."
		}
		if inner == "" || inner[0] != '{' {
			t.Skip()
		}
		names := append(slices.Sorted(maps.Keys(membersIn(t, inner))), "auth", "det", "to", "delegation_mode", "status", "summary", "task_id", "deadline")
		name := names[int(member)%len(names)]
		if strings.Contains(name, ".") {
			t.Skip()
		}
		hostile := set(t, object, within+name, values[int(with)%len(values)])
		readable(t, []byte(hostile))
		hearable(t, []byte(hostile))
	})
}

// A redacted secret leaves no trace, wherever the line is cut.
func FuzzSecret(f *testing.F) {
	f.Add(`"x":{"auth":1},`, `,"y":[]`, 300)
	f.Fuzz(func(t *testing.T, before, after string, cut int) {
		line := `{` + before + `"auth":"5ecre7-token"` + after + "}"
		valid := jsontext.Value(line).IsValid() && value(line, "auth") != ""
		if cut > 0 && cut < len(line) {
			line = line[:cut]
		}
		c, _ := dialect.Of(envelope.CLowl)
		m, findings := c.Decode([]byte(line), envelope.Strict)
		if valid && !strings.Contains(before+after, "5ecre7-token") && strings.Contains(string(m.Raw)+findings.String(), "5ecre7-token") {
			t.Fatalf("%s became %s", line, m.Raw)
		}
	})
}
