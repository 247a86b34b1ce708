package envelope_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
)

func TestAPriorityIsAWholeNumberOfItsRange(t *testing.T) {
	for value, ok := range map[string]bool{"-9": true, "0": true, "9": true, "-10": false, "10": false, "1.5": false, `"1"`: false, "true": false} {
		got, findings := decode(t, request("metadata", `{"mbx.priority":`+value+`}`))
		if findings.Refused() == ok {
			t.Errorf("priority %s: %s; want it accepted: %t", value, findings, ok)
		}
		priority, asked := got.Priority()
		if ok && (!asked || fmt.Sprint(priority) != value) {
			t.Errorf("Priority() of %s = %d, %t", value, priority, asked)
		}
	}
	got, _ := decode(t, request("metadata", `{}`))
	if priority, asked := got.Priority(); priority != 0 || asked {
		t.Errorf("Priority() without one = %d, %t; want none", priority, asked)
	}
}

func TestATaskNamesTheOneThatItWaitsFor(t *testing.T) {
	for metadata, want := range map[string]string{
		`{}`:                            " reject",
		`{"mbx.after":{"task_id":"a"}}`: "a reject",
		`{"mbx.after":{"task_id":"a","if_failed":"run"}}`:    "a run",
		`{"mbx.after":{"task_id":"a","if_failed":"reject"}}`: "a reject",
		`{"mbx.after":{"task_id":"a","if_failed":"maybe"}}`:  "refused",
		`{"mbx.after":{"if_failed":"run"}}`:                  "refused",
		`{"mbx.after":{"task_id":"../a"}}`:                   "refused",
		`{"mbx.after":"a"}`:                                  "refused",
	} {
		task, findings := decode(t, request("metadata", metadata))
		id, ifFailed := task.After()
		got := fmt.Sprintf("%s %s", id, ifFailed)
		if findings.Refused() {
			got = "refused"
		}
		if got != want {
			t.Errorf("%s: %s (%s); want %s", metadata, got, findings, want)
		}
	}
}

func TestABaseIsANameAndNoExpressionOfGit(t *testing.T) {
	for base, ok := range map[string]bool{
		"main": true, "release/1.2": true, "v1.0-rc1": true, "4d5a1cfa": true, strings.Repeat("a", 255): true,
		strings.Repeat("a", 256): false, "-x": false, "main~3": false, "HEAD^": false, "a..b": false, "main@{1}": false, ":/fix": false,
		"a b": false, "a\x1b": false, "": false,
	} {
		task, findings := decode(t, request("metadata", fmt.Sprintf(`{"mbx.base":%q}`, base)))
		if findings.Refused() == ok || ok && task.Base() != base {
			t.Errorf("base %q: %s, Base() = %q; want it accepted: %t", base, findings, task.Base(), ok)
		}
	}
}

func TestLimitsOfKeysAndDirectoriesAreInclusive(t *testing.T) {
	key, dir := strings.Repeat("k", 40), "/"+strings.Repeat("d", 4094)
	for metadata, ok := range map[string]bool{
		`{"mbx.labels":{"` + key + `":"x"}}`:  true,
		`{"mbx.labels":{"` + key + `k":"x"}}`: false,
		`{"mbx.labels":{"az09":"x"}}`:         true,
		`{"mbx.labels":{"a{":"x"}}`:           false,
		`{"mbx.workdir":"` + dir + `"}`:       true,
		`{"mbx.workdir":"` + dir + `d"}`:      false,
	} {
		if _, findings := decode(t, request("metadata", metadata)); findings.Refused() == ok {
			t.Errorf("%.60s: %s; want it accepted: %t", metadata, findings, ok)
		}
	}
}

func TestAModeSaysWhatBecomesOfNearMisses(t *testing.T) {
	found := envelope.Findings{{Kind: envelope.InvalidEnvelope, Field: "Deadline", Message: "did you mean deadline?"}}
	for mode, want := range map[envelope.Mode]string{envelope.Enforce: "refused", envelope.Warn: "warned", envelope.Off: "nothing"} {
		got := "nothing"
		switch applied := mode.Apply(slices.Clone(found)); {
		case applied.Refused():
			got = "refused"
		case len(applied) > 0:
			got = "warned"
		}
		if got != want {
			t.Errorf("mode %d: %s; want %s", mode, got, want)
		}
	}
}

func TestATaskLosesOnlyTheReferenceThatIsNamed(t *testing.T) {
	task := envelope.Task{Refs: []envelope.Ref{{URI: "a.md"}, {URI: "file://a.md"}, {URI: "b.md"}}}
	if got := task.WithoutRef("a.md"); len(got.Refs) != 1 || got.Refs[0].URI != "b.md" || len(task.Refs) != 3 {
		t.Errorf("without a.md: %v, before: %v; want b.md alone, and all three before", got.Refs, task.Refs)
	}
}

func TestAnObjectWithTheMarksOfTwoDialectsHasNone(t *testing.T) {
	for object, want := range map[string]envelope.Dialect{
		`{"task_id":"a"}`:                                    envelope.AINL,
		`{"clowl":"0.2","mid":"a","p":"REQ"}`:                envelope.CLowl,
		`{"clowl":"0.2","v":"clutch/0.1"}`:                   envelope.AINL,
		`{"clowl":"0.2","target_agent":"a"}`:                 envelope.AINL,
		`{"id":"a","system_prompt":"b"}`:                     envelope.AINL,
		`{"sender_id":"x","recipient_id":"y"}`:               envelope.CAP,
		`{"clowl":"0.2","sender_id":"x","recipient_id":"y"}`: envelope.CLowl,
		`{"sender_id":"x"}`:                                  envelope.AINL,
		`[]`:                                                 envelope.AINL,
	} {
		if got := envelope.MarkedAs([]byte(object)); got != want {
			t.Errorf("MarkedAs(%s) = %q; want %q", object, got, want)
		}
	}
}

func TestTheBoundsOfConfidenceAreConfidences(t *testing.T) {
	for _, value := range []string{"0", "1"} {
		got, findings := envelope.DecodeAnswer([]byte(`{"agent_id":"a","confidence":` + value + `}`))
		if got.Confidence == nil || fmt.Sprint(*got.Confidence) != value || len(findings) > 0 {
			t.Errorf("confidence %s: %v, %s; want it taken", value, got.Confidence, findings)
		}
	}
}

func TestANumberOfAnAnswerIsNoLongerThanPythonReads(t *testing.T) {
	for digits, ok := range map[int]bool{4300: true, 4301: false} {
		_, findings := envelope.DecodeAnswer([]byte(`{"agent_id":"a","output":{"n":` + strings.Repeat("7", digits) + `}}`))
		if findings.Refused() == ok {
			t.Errorf("a number of %d digits: %.80s; want it accepted: %t", digits, findings, ok)
		}
	}
}

func TestAnEscapeHasFourHexadecimalDigits(t *testing.T) {
	for digits, ok := range map[string]bool{"0afF": true, "09Aa": true, "00g0": false, "00G0": false, "00:0": false, "00/0": false, "00@0": false, "00`0": false} {
		if _, findings := decode(t, request("description", `"\u`+digits+`"`)); findings.Refused() == ok {
			t.Errorf("\\u%s: %s; want it accepted: %t", digits, findings, ok)
		}
	}
}
