package dialect_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

const (
	ainlLine = `{"schema_version":"1.0","task_id":"t1","requester_id":"ken","target_agent":"radar","target_role":"executor","task_type":"search","description":"","input":{"payload":{}}}`
	capLine  = `{"type":"delegation_notice","task_id":"T1","sender_id":"orchestrator","recipient_id":"pm-1","context_summary":"x","attachments":[]}`
)

func TestALineIsReadInItsDialect(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", ""},
		{" \r\n", ""},
		{ainlLine, "ainl t1"},
		{complete + "\r\n", "clowl m001"},
		{capLine, "cap T1"},
		{"{}", "ainl refused invalid_envelope schema_version: required"},
		{"[" + complete + "]", "ainl refused invalid_envelope must be a JSON object"},
		{ainlLine + complete, "ainl t1, clowl m001"},
		{complete + capLine + ainlLine, "clowl m001, cap T1, ainl t1"},
		{complete[:40] + complete, `clowl refused invalid_json ts: ends where a comma or the end of the object should be (byte 40), clowl m001`},
		{capLine[:85] + ainlLine, "cap refused invalid_json recipient_id: "},
		{`{"cl":"0.1","mid":"m","p":"REQ","from":"a","to":"b","cid":"c","body":{"t":"x","d":{}},"ctx":""}`, "clowl refused unsupported_version clowl"},
		{strings.Replace(complete, `"0.2"`, `2`, 1), `clowl refused invalid_envelope clowl: must be the string "0.2"`},
		{strings.Replace(complete, `"clowl":"0.2",`, ``, 1), "ainl refused invalid_envelope schema_version: required"},
		{strings.Replace(complete, `{`, `{"mid":"m001",`, 1), "clowl refused invalid_envelope mid: appears more than once"},
		{strings.Replace(complete, `"clowl"`, `"cl\u006fwl"`, 1), "clowl m001"},
		{strings.Replace(capLine, `"delegation_notice"`, `"chat"`, 1), "cap refused invalid_envelope type"},

		// row 50: two at once, and what is no message of a mailbox
		{`{"clowl":"0.2",` + ainlLine[1:], "ainl refused invalid_envelope is ambiguous: an AgentTaskRequest and a CLowl message at once"},
		{`{"clowl":"0.2",` + capLine[1:], "ainl refused invalid_envelope is ambiguous: a CLowl message and a CAP message at once"},
		{`{"requester_id":"x",` + capLine[1:], "ainl refused invalid_envelope is ambiguous: an AgentTaskRequest and a CAP message at once"},
		{`{"task_id":"t","agent_id":"a","status":"ok"}`, "ainl refused invalid_envelope is an AgentTaskResult, not an AgentTaskRequest"},
		{`{"agent_id":"a","role_types":[]}`, "ainl refused invalid_envelope is an AgentManifest, not an AgentTaskRequest"},
		{`{"id":"pm-1","system_prompt":"x"}`, "ainl refused invalid_envelope is a CAP agent definition, not an AgentTaskRequest"},
		{clutchLine, "clutch task-1"},
		{`{"type":"BLOCKER","payload":{}}`, `ainl refused invalid_envelope v: required: it looks like a Clutch message of the legacy type "BLOCKER"`},
		{strings.Replace(clutchLine, `"type":"task.request"`, `"capabilities":[]`, 1), "clutch refused invalid_envelope is an AgentCard, not a message"},
		{clutchLine[:80] + clutchLine, "clutch refused invalid_json "},
		{`{"v":"clutch/0"}`, `clutch refused unsupported_version v: is another version, only "clutch/0.1" is supported`},
		{`{"v":"clutch/0.1","clowl":"0.2"}`, "ainl refused invalid_envelope is ambiguous: a CLowl message and a Clutch message at once"},
	} {
		got := []string{}
		for _, p := range dialect.Read([]byte(c.line), envelope.Strict) {
			word := string(p.Message.Dialect) + " " + string(p.Message.Task)
			if p.Findings.Refused() {
				f := p.Findings.Refusals()[0]
				word = string(p.Message.Dialect) + " refused " + string(f.Kind) + " " + f.String()
			}
			got = append(got, word)
		}
		if all := strings.Join(got, ", "); !strings.HasPrefix(all, c.want) || c.want == "" && all != "" {
			t.Errorf("%.90s\nis %s\nwant %s", c.line, all, c.want)
		}
	}
}

// A sender that was cut off and tried again waits for the answer to the second piece.
func TestAFragmentDoesNotAnswerForTheCompletePiece(t *testing.T) {
	pieces := dialect.Read([]byte(capLine[:60]+capLine), envelope.Strict)
	if len(pieces) != 2 || !pieces[0].Findings.Refused() || pieces[0].Message.Task != "" || pieces[1].Message.Task != "T1" || pieces[1].Findings.Refused() {
		t.Errorf("pieces are %+v", pieces)
	}
}

func TestARefusedMessageBehindAFragmentIsAPieceOfItsOwn(t *testing.T) {
	refused := `{"clowl":"0.2","mid":"m1","ts":1709078400,"p":"NOPE","from":"ann","to":"worker","cid":"c1","body":{"t":"x","d":{}}}`
	pieces := dialect.Read([]byte(capLine[:60]+refused), envelope.Strict)
	if len(pieces) != 2 || !pieces[1].Findings.Refused() || pieces[1].Message.ID != "m1" || pieces[1].Message.From != "ann" {
		t.Errorf("pieces are %+v; want a fragment and m1, refused", pieces)
	}
}

// A line of AINL reads the same with and without the readers of the other dialects.
func TestALineOfAINLReadsTheSameAmongOtherDialects(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "testdata", "upstream-requests.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		want, got := envelope.ReadLine([]byte(line), envelope.Strict), dialect.Read([]byte(line), envelope.Strict)
		if len(want) != len(got) {
			t.Fatalf("%s: %d pieces; want %d", line, len(got), len(want))
		}
		for i := range want {
			if got[i].Message.Request.Hash != want[i].Task.Hash || got[i].Message.Dialect != envelope.AINL || got[i].Findings.String() != want[i].Findings.String() {
				t.Errorf("%s: %+v; want %+v", line, got[i], want[i])
			}
		}
	}
}

func TestALineThatIsTooLongStillNamesItsSender(t *testing.T) {
	for _, c := range []struct {
		line string
		want envelope.Message
	}{
		{ainlLine, envelope.Message{Dialect: envelope.AINL, Task: "t1", From: "ken"}},
		{complete, envelope.Message{Dialect: envelope.CLowl, Task: "m001", From: "oscar", ID: "m001"}},
		{capLine, envelope.Message{Dialect: envelope.CAP, Task: "T1", From: "orchestrator"}},
		{ainlLine[:len(ainlLine)-1], envelope.Message{Dialect: envelope.AINL}}, // it is torn: no codec reads it
	} {
		p := dialect.TooLong(envelope.LongText([]byte(c.line)), 9)
		m := p.Message
		got := envelope.Message{Dialect: m.Dialect, Task: m.Task, From: m.From, ID: m.ID}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%.40s (-want +got):\n%s", c.line, diff)
		}
		if want := fmt.Sprintf("the line is %d bytes long, more than 9", len(c.line)); p.Findings.String() != want {
			t.Errorf("%.40s is refused as %q; want %q", c.line, p.Findings, want)
		}
		if m.Request.ID != m.Task || string(m.Request.Raw) != c.line || m.Request.Hash != envelope.LongText([]byte(c.line)).SHA256 {
			t.Errorf("%.40s asks for %q, %.40q, %s; want what the message says", c.line, m.Request.ID, m.Request.Raw, m.Request.Hash)
		}
	}
}

func TestARequestInTheLedgerIsReadAgain(t *testing.T) {
	for _, line := range []string{ainlLine, complete, capLine} {
		m := dialect.Read([]byte(line), envelope.Strict)[0].Message
		again, findings := dialect.DecodeTask(m.Dialect, m.Raw, envelope.Legacy)
		if findings.Refused() || again.ID != m.Task || again.Hash != m.Hash || again.Agent != m.To[0] {
			t.Errorf("%s is read again as %+v: %v", line, again, findings)
		}
	}
	if _, findings := dialect.DecodeTask(envelope.CLowl, []byte(performing(t, "INF", "x", "{}")), envelope.Strict); !findings.Refused() {
		t.Error("a message that asks for nothing has a task")
	}
	if _, findings := dialect.DecodeTask("klingon", []byte(complete), envelope.Strict); !findings.Refused() {
		t.Error("an unknown dialect has a task")
	}
}

// What ships with the references of the protocols misspells no control.
func TestNoShippedSampleHasANearMiss(t *testing.T) {
	read := 0
	for _, pattern := range []string{"testdata/*.jsonl", "../testdata/*.jsonl", "../testdata/request-*.json", "../../examples/*/*.jsonl"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.Split(text, []byte("\n"))
			if filepath.Ext(file) == ".json" {
				lines = [][]byte{bytes.ReplaceAll(text, []byte("\n"), []byte(" "))}
			}
			for _, line := range lines {
				for _, piece := range dialect.Read(line, envelope.Strict) {
					read++
					if near := piece.Message.Request.NearMisses; near != nil {
						t.Errorf("AINL-54: %s: %s", file, near)
					}
				}
			}
		}
	}
	if read < 20 {
		t.Errorf("%d messages were read; want those of all protocols", read)
	}
}
