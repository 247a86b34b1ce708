package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
)

// recovered is the outcome of a run that printed a text and exited with 0.
func recovered(t *testing.T, format agent.Format, stdout string) task.Outcome {
	t.Helper()
	b := playing(t, "hang")
	b.Output = format
	j := jobFor(t, request(""))
	ended(t, j, stdout, task.Exit{PID: 1 << 30})
	return bound(t, b).Recover(t.Context(), j)
}

// Row 35.
func TestAnAnswerIsFoundInTheNoise(t *testing.T) {
	const answer = `{"status": "ok", "output": {"summary": "right"}}`
	const other = `{"status": "ok", "output": {"summary": "wrong"}}`
	pretty := "{\n  \"status\": \"ok\",\n  \"output\": {\n    \"summary\": \"right\",\n    \"actions\": [\n]\n  }\n}"
	for name, stdout := range map[string]string{
		"alone":                          answer,
		"over several lines":             pretty,
		"a byte order mark":              "\uFEFF" + answer,
		"white space around it":          "\r\n\t " + answer + "\r\n\r\n",
		"a fence around it":              "```json\n" + answer + "\n```\n",
		"a banner before it":             "Welcome to Agent 3000!\n" + answer,
		"a log after it":                 answer + "\ndone in 3 s\n",
		"log objects before it":          `{"level": "info"}` + "\n" + other + "\n" + pretty + "\n",
		"words and a fence":              "Here it is:\n\n```json\n" + pretty + "\n```\n\nAnything else?",
		"colours around it":              "\x1b[32m" + answer + "\x1b[0m\n",
		"colours within it":              "\x1b[1m{\x1b[0m\"summary\": \x1b[32m\"right\"\x1b[0m}\n",
		"a terminal title before it":     "\x1b]0;agent\x07" + answer,
		"a progress bar before it":       "10 %\r50 %\r" + answer,
		"a mark at its line":             "log\n\uFEFF" + answer + "\n",
		"a brace that is no object":      "{ not json\n" + answer,
		"an object within a line":        "see " + other + " and:\n" + answer,
		"a broken object before it":      `{"summary": "wrong", }` + "\n" + answer,
		"half an object after it":        answer + "\n" + `{"status": "ok", "output": {`,
		"more output than is read":       strings.Repeat("log\n", 2<<20) + answer,
		"objects that name one task":     `{"task_id": "t1"}` + "\n" + strings.Replace(answer, "{", `{"task_id": "t1", `, 1),
		"its output and nothing else":    `{"summary": "right", "actions": [], "sla": 3}`,
		"more text than a pipe can hold": strings.Repeat("log ", 1<<18) + "\n" + answer,
	} {
		got := recovered(t, agent.Envelope, stdout)
		expect(t, name, got, envelope.OK, "")
		if got.Result.Output.Summary != "right" {
			t.Errorf("%s: summary = %q; want that of the answer", name, got.Result.Output.Summary)
		}
	}
}

// Rows 35 and 37.
func TestWhatIsNoAnswerIsNotGuessedAt(t *testing.T) {
	for name, stdout := range map[string]string{
		"nothing":                      "",
		"only white space":             " \n\t\n",
		"only noise":                   "Welcome!\n",
		"half an object":               `{"status": "ok", "output": {"summary": "x"`,
		"half an object, whole within": "{\"status\": \"ok\", \"output\":\n{\"summary\": \"x\"}\n",
		"two objects on one line":      `{"summary": "a"}{"summary": "b"}`,
		"answers for two tasks":        `{"task_id": "t1", "summary": "a"}` + "\n" + `{"task_id": "t2", "summary": "b"}`,
		"an object within a line":      `the answer is {"summary": "x"} as you see`,
		"the inside of a broken one":   "{\n  \"confidence\": NaN,\n  \"actions\": [\n    {\"summary\": \"x\"}\n  ]\n}",
		"a name twice":                 `{"summary": "a", "summary": "b"}`,
		"bad UTF-8":                    "{\"summary\": \"\xff\"}",
		"NaN":                          `{"summary": "a", "confidence": NaN}`,
		"very deep":                    strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000),
		"nested halves without end":    strings.Repeat("{\"a\":[\n", 1<<17),
		"nested broken ones":           strings.Repeat("{\"a\":[\n", 1<<17) + "!",
		"an object larger than read":   `{"summary": "` + strings.Repeat("x", 5<<20) + `"}`,
		"another shape":                `{"level": "info"}`,
	} {
		expect(t, name, recovered(t, agent.Envelope, stdout), envelope.Failed, envelope.OutputInvalid)
	}
}

// Row 38.
func TestAnAnswerForSomebodyElseIsNotTaken(t *testing.T) {
	for name, stdout := range map[string]string{
		"another task":  `{"task_id": "t2", "status": "ok", "output": {"summary": "stray"}}`,
		"another agent": `{"agent_id": "other", "status": "ok", "output": {"summary": "stray"}}`,
	} {
		got := recovered(t, agent.Envelope, stdout)
		expect(t, name, got, envelope.Failed, envelope.IdentityMismatch)
		if got.Result.TaskID != "t1" || got.Result.Output.Summary == "stray" {
			t.Errorf("%s: result = %+v; want nothing of the answer", name, got.Result)
		}
	}
}

func TestJSONIsTheOutput(t *testing.T) {
	got := recovered(t, agent.JSON, `{"status": "failed", "task_id": "t9", "cost_used": {"tokens": 5, "usd_cents": 5}, "n": 12345678901234567890}`)
	expect(t, "json", got, envelope.OK, "")
	if got.Result.Cost != nil {
		t.Errorf("cost = %v; want it unknown: json is not metered", got.Result.Cost)
	}
	want := `{"status":"failed","task_id":"t9","cost_used":{"tokens": 5, "usd_cents": 5},"n":12345678901234567890}`
	if string(got.Result.Output.Extra) != want {
		t.Errorf("output = %s; want %s", got.Result.Output.Extra, want)
	}
	expect(t, "no object", recovered(t, agent.JSON, "[]"), envelope.Failed, envelope.OutputInvalid)
}

func TestTextIsTheSummary(t *testing.T) {
	got := recovered(t, agent.Text, "All is \xff well.\n\n").Result
	if got.Status != envelope.OK || got.Output.Summary != "All is \uFFFD well." {
		t.Errorf("result = %+v; want the text as its summary", got)
	}
	if got := recovered(t, agent.Text, "").Result; got.Status != envelope.OK || got.Output.Summary != "" {
		t.Errorf("result = %+v; want an empty text to be fine", got)
	}
	got = recovered(t, agent.Text, strings.Repeat("x", 3<<20)).Result
	if len(got.Output.Summary) > 1<<20+100 || !strings.HasSuffix(got.Output.Summary, "among the artifacts]") {
		t.Errorf("summary has %d bytes, ending %q; want it cut, with a note", len(got.Output.Summary), got.Output.Summary[len(got.Output.Summary)-50:])
	}
}

func TestTheResultFileIsTheAnswerIfItIsWritten(t *testing.T) {
	b := playing(t, "write", file(t, "text", `{"summary": "from the file"}`))
	got := outcome(t, b)
	expect(t, "Run", got, envelope.OK, "")
	if got.Result.Output.Summary != "from the file" {
		t.Errorf("summary = %q; want that of the result file", got.Result.Output.Summary)
	}
	b = playing(t, "write", file(t, "text", ""))
	expect(t, "an empty file", outcome(t, b), envelope.Failed, envelope.OutputInvalid)
}

func TestAResultFileLeadsNowhereElse(t *testing.T) {
	outside := file(t, "secret", `{"summary": "secret"}`)
	for name, create := range map[string]func(path string) error{
		"a link out of the run": func(path string) error { return os.Symlink(outside, path) },
		"a FIFO":                func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a directory":           func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		j := jobFor(t, request(""))
		ended(t, j, `{"summary": "from stdout"}`, task.Exit{PID: 1 << 30})
		if err := create(filepath.Join(j.Dir, "result.json")); err != nil {
			t.Fatal(err)
		}
		expect(t, name, bound(t, playing(t, "hang")).Recover(t.Context(), j), envelope.Failed, envelope.OutputInvalid)
	}
}
