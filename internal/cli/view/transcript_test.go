package view_test

import (
	"bytes"
	"strings"
	"testing"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

const claudeOutput = `{"type":"system","subtype":"init","session_id":"s","cwd":"/w","tools":[]}
{"type":"assistant","message":{"content":[{"type":"text","text":"I look at the tests \u001b[2J first, since they say what has to hold.\n- one\n- two"}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"go test ./... -run 'A very long name of a test' -count=1"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":"exit 1"}]}}
a warning
{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s","duration_ms":1200,"num_turns":1,"total_cost_usd":0.5}
{"type":"cut`

const shownPlain = `I look at the tests \u001b[2J first, since they say what has to hold.
- one
- two
  Bash go test ./... -run 'A very long name of a test' -count=1
  Bash failed: exit 1
a warning
Done.

1.2s, 1 turn, $0.50
  1 event not shown; --raw prints them
`

const shownNarrow = `I look at the tests \u001b[2J first, since
they say what has to hold.
- one
- two
  Bash go test ./... -run 'A very long na…
  Bash failed: exit 1
a warning
Done.

1.2s, 1 turn, $0.50
  1 event not shown; --raw prints them
`

func TestTheOutputOfAKnownProgramIsPrintedForPeople(t *testing.T) {
	for columns, want := range map[int]string{0: shownPlain, 42: shownNarrow} {
		for _, step := range []int{1, 7, len(claudeOutput)} { // bytes of a write
			var out bytes.Buffer
			shown := view.NewTranscript(term.Screen{Writer: &out, Columns: columns})
			for rest := claudeOutput; rest != ""; rest = rest[min(step, len(rest)):] {
				if _, err := shown.Write([]byte(rest[:min(step, len(rest))])); err != nil {
					t.Fatal(err)
				}
			}
			if err := shown.Close(); err != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Errorf("%d columns, %d bytes a write:\n%s\nwant\n%s", columns, step, out.String(), want)
			}
		}
	}
}

func TestAnEventThatIsTooLongIsNotPrinted(t *testing.T) {
	var out bytes.Buffer
	shown := view.NewTranscript(&out)
	begin, _, _ := strings.Cut(claudeOutput, "\n")
	for _, part := range []string{begin + "\n", `{"type":"user","x":"` + strings.Repeat("y", 9<<20), `"}` + "\nwords\n" + `{"type":"odd"}` + "\n"} {
		if _, err := shown.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if err := shown.Close(); err != nil || out.String() != "words\n  2 events not shown; --raw prints them\n" {
		t.Errorf("%v, it printed %.80q", err, out.String())
	}
}

func TestTheErrorsOfAProgramAreShownInLinesAndOthersByteForByte(t *testing.T) {
	const printed = "Warning: x\x1b[2J\nAttempt 1 failed with status 503. Retrying with backoff... _ApiError: {\"error\":{}}\n    at a (b) {\n  status: 503\n}\nno line break, Att"
	const want = "Warning: x\x1b[2J\n  the provider is overloaded; attempt 1\nno line break, Att"
	for _, step := range []int{1, 7, len(printed)} {
		var out bytes.Buffer
		shown := view.NewErrorLog(&out)
		for rest := printed; rest != ""; rest = rest[min(step, len(rest)):] {
			if _, err := shown.Write([]byte(rest[:min(step, len(rest))])); err != nil {
				t.Fatal(err)
			}
		}
		if err := shown.Close(); err != nil || out.String() != want {
			t.Errorf("%d bytes a write: %v\n%q\nwant\n%q", step, err, out.String(), want)
		}
	}
	var out bytes.Buffer
	if _, err := view.NewErrorLog(&out).Write([]byte("wait.")); err != nil || out.String() != "wait." {
		t.Errorf("%v, a plain beginning of a line is printed as %q", err, out.String())
	}
}

func TestOtherOutputIsPrintedByteForByte(t *testing.T) {
	long := `{"type":"system"` + strings.Repeat("x", 9<<20)
	for _, output := range []string{"", "no line break", "a\r\nb\x1b[2J\n", `{"summary": "x"}`, "{\n  \"a\": 1\n}\n", "{\"type\":\"message\"}\n{\"type\":\"message\"}\n", "\xff\xfe\n", "\n\n", "  {\n", long, long + "\n{}\n"} {
		var out bytes.Buffer
		shown := view.NewTranscript(&out)
		if _, err := shown.Write([]byte(output)); err != nil {
			t.Fatal(err)
		}
		if err := shown.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != output {
			t.Errorf("%.40q is printed as %.40q", output, out.String())
		}
	}
}

func TestWordsOfAPlainAgentArePrintedAtOnce(t *testing.T) {
	var out bytes.Buffer
	shown := view.NewTranscript(&out)
	if _, _ = shown.Write([]byte("working")); out.String() != "working" {
		t.Errorf("printed %q; want the words without their line break", out.String())
	}
}
