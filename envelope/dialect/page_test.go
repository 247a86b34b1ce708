package dialect_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

var update = flag.Bool("update", false, "write the table of errors into docs/dialects.md")

const page = "../../docs/dialects.md"

// section is what stands between two marks of the page.
func section(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, text2, opened := strings.Cut(string(text), "<!-- "+name+" -->\n")
	inner, _, closed := strings.Cut(text2, "<!-- /"+name+" -->\n")
	if !opened || !closed {
		t.Fatalf("the page has no section %s", name)
	}
	return inner
}

func TestThePageListsTheCodesOfEveryError(t *testing.T) {
	table := "| kind | CLowl | CAP | retry | Clutch | retryable |\n|---|---|---|---|---|---|\n"
	kinds := everyKind(t)
	slices.SortStableFunc(kinds, func(a, b envelope.Kind) int {
		codeA, capA, _ := dialect.Code(a)
		codeB, capB, _ := dialect.Code(b)
		return strings.Compare(fmt.Sprint(codeA, capA), fmt.Sprint(codeB, capB))
	})
	for _, kind := range kinds {
		clowl, cap, retry := dialect.Code(kind)
		clutch, again := dialect.ClutchCode(kind)
		yes := map[bool]string{true: "yes", false: "no"}
		table += fmt.Sprintf("| `%s` | %s | %d | %s | %s | %s |\n", kind, clowl, cap, yes[retry], clutch, yes[again])
	}
	was := section(t, "errors")
	if *update {
		text, err := os.ReadFile(page)
		if err == nil {
			err = os.WriteFile(page, []byte(strings.Replace(string(text), was, table, 1)), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if was != table {
		t.Errorf("the page lists\n%s\nwant\n%s\nrun go test ./envelope/dialect -run ThePage -update", was, table)
	}
}

// The page lists exactly the losses of each dialect: the test encodes everything and collects
// the reported losses.
func TestThePageListsAllLosses(t *testing.T) {
	listed := map[string][]string{}
	for row := range strings.Lines(section(t, "lost")) {
		cells := strings.Split(row, "|")
		if len(cells) < 5 || !strings.Contains(cells[3], "`") {
			continue
		}
		pair := strings.ToLower(strings.TrimSpace(cells[1]) + " " + strings.TrimSpace(cells[2]))
		for i, word := range strings.Split(cells[3], "`") {
			if i%2 == 1 {
				listed[pair] = append(listed[pair], word)
			}
		}
	}
	for _, from := range dialects {
		for _, to := range dialects {
			pair := string(from) + " " + string(to)
			got, want := reported(t, from, to), listed[pair]
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s: reported %q\nthe page says %q", pair, got, want)
			}
		}
	}
}

var dialects = []envelope.Dialect{envelope.AINL, envelope.CLowl, envelope.CAP, envelope.Clutch}

// reported are the losses of those messages in another dialect.
func reported(t *testing.T, from, to envelope.Dialect) []string {
	t.Helper()
	codec, _ := dialect.Of(to)
	names := []string{}
	for _, m := range everything(t, from) {
		_, lost := codec.Encode(m)
		names = append(names, lost...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// everything are messages with all members of a dialect.
func everything(t testing.TB, d envelope.Dialect) (all []envelope.Message) {
	t.Helper()
	codec, _ := dialect.Of(d)
	receive := func(raw string) {
		m, findings := codec.Receive([]byte(raw), envelope.Task{ID: "m001", Agent: "radar", Requester: "oscar", Type: "search"})
		if findings.Refused() {
			t.Fatalf("%s: %v", raw, findings)
		}
		all = append(all, m)
	}
	read := func(raws ...string) {
		for _, raw := range raws {
			m, findings := codec.Decode([]byte(raw), envelope.Strict)
			if findings.Refused() {
				t.Fatalf("%s: %v", raw, findings)
			}
			all = append(all, m)
		}
	}
	switch d {
	case envelope.AINL:
		limited := ainlLine
		for name, value := range limits {
			limited = set(t, limited, name, value)
		}
		read(ainlLine, set(t, limited, "input.refs", `[{"kind":"a","uri":"file://b"},{"kind":"a","uri":"file://c"}]`))
		receive(fullAnswer)
		receive(`{"status":"error","summary":"x","error":{"kind":"timeout","message":"y"}}`)
	case envelope.CLowl:
		ainl := "{}"
		for name, value := range limits {
			ainl = set(t, ainl, name, value)
		}
		read(set(t, set(t, set(t, complete, "to", `["a","b"]`), "body.d.ainl", ainl), "more", "1"))
		for _, c := range performed {
			if c.code == "" {
				read(performing(t, c.p, c.t, c.d))
			}
		}
		read(performing(t, "ERR", "error", `{"code":"E003","msg":"x","retry":false}`))
		result := "{}"
		for _, name := range []string{"confidence", "artifact_refs", "cost_used", "time_used", "needs_review", "provenance_ref"} {
			result = set(t, result, name, value(fullAnswer, name))
		}
		read(performing(t, "DONE", "x", `{"summary":"s","status":"partial","ainl":`+result+`}`))
	case envelope.CAP:
		things := `[{"type":"python_object","object":{}},{"type":"tool_call_result","server_id":"s","tool":"t","result":1},{"type":"file","path":"a"},{"type":"text_snippet","text":"x"}]`
		notice := set(t, capLine, "attachments", things)
		for _, word := range []string{"message content", "oversight_inquiry inquiry", "delegation_notice context_summary", "error_response error_message"} {
			kind, words, _ := strings.Cut(word, " ")
			line := set(t, set(t, set(t, notice, "context_summary", ""), words, `"x"`), "type", `"`+kind+`"`)
			if kind == "error_response" {
				line = set(t, set(t, line, "attachments", ""), "error_code", "418")
			}
			read(line, set(t, line, "sender_id", `"pm-1"`), set(t, line, "more", "1"))
		}
	case envelope.Clutch:
		ainl := "{}"
		for name, value := range limits {
			if name != "budget_limit" && name != "allowed_tools" {
				ainl = set(t, ainl, name, value)
			}
		}
		full := set(t, set(t, clutchLine, "meta.ainl", ainl), "more", "1")
		read(full, set(t, set(t, full, "parent_task_id", `"task-0"`), "to", `[{"agent_id":"agent:a"},{"agent_id":"group:g"}]`))
		for _, c := range clutchSaid {
			read(clutchSaying(t, c.word, c.payload, c.intent))
		}
		result := "{}"
		for _, name := range []string{"artifact_refs", "cost_used", "time_used", "needs_review", "provenance_ref"} {
			result = set(t, result, name, value(fullAnswer, name))
		}
		answer := clutchSaying(t, "task.result", `{"success":true,"status":"partial","summary":"s","confidence":0.5}`, "")
		read(set(t, set(t, set(t, answer, "meta.ainl", result), "payload_type", `"x.v1"`), "schema_ref", `"schema://x"`))
		read(set(t, set(t, answer, "meta.clowl", `{"det":true}`), "more", "1"))
	}
	return all
}

// limits are all members of a request that bound what it may do, and the like.
var limits = map[string]string{
	"target_role": `"planner"`, "approval_required": `"both"`, "human_approver": `"ann"`, "budget_limit": `{"tokens":5}`,
	"allowed_tools": `["a"]`, "required_output_contract": `{"format":"json"}`, "sensitivity": `"restricted"`,
	"callback": `{"queue":"q"}`, "deadline": `"2030-01-02T03:04:05Z"`,
	"policy_context": `{"environment":"prod","change_window":"2030-01-01T00:00:00Z/PT1H"}`, "metadata": `{"k":1}`,
}

// fullAnswer is an AgentTaskResult with nothing left out.
const fullAnswer = `{"schema_version":"1.0","task_id":"m001","agent_id":"radar","status":"partial","confidence":0.5,` +
	`"output":{"summary":"s","actions":[{"kind":"k","description":"d","status":"executed"}],"hits":[1]},` +
	`"artifact_refs":[{"kind":"file","uri":"file://a"}],"cost_used":{"tokens":3,"usd_cents":4},` +
	`"time_used":{"started_at":"2026-03-09T23:00:00Z","finished_at":"2026-03-09T23:00:01Z","wall_ms":1000},` +
	`"needs_review":{"required":true,"reason":"r"},"error":{"kind":null,"message":null},` +
	`"provenance_ref":{"ainl_graph_checksum":"c","ainl_program_id":"p","runtime_version":"v","recording_uri":"u"}}`
