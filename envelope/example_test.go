package envelope_test

import (
	"fmt"
	"os"
	"time"

	"mailboxd/envelope"
)

func ExampleReadLine() {
	line := []byte(`{"schema_version":"1.0","task_id":"t1","requester_id":"planner","target_agent":"monitor",` +
		`"target_role":"executor","task_type":"look","description":"","input":{"payload":{},"refs":[{"kind":"file"}]}}`)
	for _, piece := range envelope.ReadLine(line, envelope.Strict) {
		fmt.Println(piece.Task.ID, piece.Findings)
	}
	// Output: t1 input.refs[0].uri: required
}

func ExampleDecodeAnswer() {
	answer, findings := envelope.DecodeAnswer([]byte(`{"summary":"all green","status":"done","confidence":0.9}`))
	fmt.Println(answer.Status, answer.Output.Summary, findings.Refused())
	// Output: ok all green false
}

func ExampleResult_EncodeLine() {
	when := time.Date(2026, 3, 9, 20, 0, 0, 0, time.UTC)
	r := envelope.Result{TaskID: "t1", AgentID: "monitor", Status: envelope.OK}
	r.Output.Summary = "all green"
	r.Time = envelope.TimeUsed{Started: when, Finished: when.Add(time.Second), Wall: time.Second}
	os.Stdout.Write(r.EncodeLine()[:99])
	// Output: {"schema_version":"1.0","task_id":"t1","agent_id":"monitor","status":"ok","confidence":null,"output
}
