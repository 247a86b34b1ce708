package envelope_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
)

func TestLevelsAreWrittenInOneOrderAndReadBack(t *testing.T) {
	levels := envelope.Levels{"later": "novel", "another": ""}
	for _, control := range envelope.Controls() {
		levels[control] = envelope.LevelDaemon
	}
	then := time.Date(2026, 3, 9, 20, 0, 0, 0, time.UTC)
	r := envelope.Result{
		TaskID: "t", AgentID: "a", Status: envelope.OK, Output: envelope.Output{Enforcement: levels},
		Time: envelope.TimeUsed{Started: then, Finished: then},
	}
	file := string(r.EncodeLine())
	for range 20 {
		if again := string(r.EncodeLine()); again != file {
			t.Fatalf("the same levels are written as %s and as %s", file, again)
		}
	}
	if !strings.Contains(file, `"enforcement":{"role":"daemon","task_type":"daemon",`) || !strings.Contains(file, `"lineage":"daemon","another":"","later":"novel"}`) {
		t.Errorf("EncodeLine = %s; want the controls in the contract's order, then the others", file)
	}
	got, findings := envelope.DecodeResult([]byte(file))
	if diff := cmp.Diff(levels, got.Output.Enforcement); diff != "" || len(findings) > 0 {
		t.Errorf("read back with %v, differs (-want +got):\n%s", findings, diff)
	}
}

func TestEmptyLevelsDifferFromAbsentLevels(t *testing.T) {
	for want, levels := range map[string]envelope.Levels{`"actions":[]}`: nil, `"actions":[],"enforcement":{}}`: {}} {
		r := envelope.Result{TaskID: "t", AgentID: "a", Status: envelope.OK, Output: envelope.Output{Enforcement: levels}}
		if file := string(r.EncodeLine()); !strings.Contains(file, want) {
			t.Errorf("levels %v: %s; want %s in it", levels, file, want)
		}
	}
}

// An agent must not be able to report strong enforcement of its own run.
func TestAnAgentCannotVouchForItself(t *testing.T) {
	for name, raw := range map[string]string{
		"in its output": `{"agent_id":"a","output":{"summary":"s","enforcement":{"tools":"kernel"},"x":1}}`,
		"laid out flat": `{"agent_id":"a","summary":"s","enforcement":{"tools":"kernel"}}`,
		"alone":         `{"summary":"s","enforcement":{"tools":"kernel"}}`,
		"as a word":     `{"summary":"s","enforcement":"kernel"}`,
		"escaped":       `{"summary":"s","enf\u006frcement":{"tools":"kernel"}}`,
	} {
		got, findings := envelope.DecodeAnswer([]byte(raw))
		if file := string(got.Encode()); findings.Refused() || strings.Contains(file, `"kernel"`) || got.Output.Enforcement != nil {
			t.Errorf("%s: %v, written as %s; want the claim left out", name, findings, file)
		}
		if !got.Review.Required || !strings.Contains(got.Review.Reason, "enforcement: is for mailboxd to say") {
			t.Errorf("%s: review = %+v; want a review by a person", name, got.Review)
		}
	}
	_, findings := envelope.DecodeOutput([]byte(`{"enforcement":{}}`))
	if len(findings.Warnings()) != 1 {
		t.Errorf("DecodeOutput: findings = %v; want a warning", findings)
	}
}

func TestAResultOfAnotherShapeIsStillRead(t *testing.T) {
	for enforcement, want := range map[string]envelope.Levels{`"strict"`: nil, `{"tools":1,"role":"daemon"}`: {"role": "daemon"}, `null`: nil} {
		raw := `{"schema_version":"1.0","task_id":"t","agent_id":"a","status":"ok","output":{"summary":"s","actions":[],"enforcement":` + enforcement + `}}`
		got, findings := envelope.DecodeResult([]byte(raw))
		if findings.Refused() || !cmp.Equal(got.Output.Enforcement, want) {
			t.Errorf("enforcement %s: %v, %v; want %v", enforcement, got.Output.Enforcement, findings, want)
		}
	}
}
