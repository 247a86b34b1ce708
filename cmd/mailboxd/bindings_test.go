package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

// requests has, for each dialect, a request of the requester "ann" with an id and
// an agent in it.
var requests = map[envelope.Dialect]string{
	envelope.AINL: `{"schema_version":"1.0","task_id":%q,"requester_id":"ann","target_agent":%q,"target_role":"executor",` +
		`"task_type":"work","description":"count the birds","input":{"refs":[],"payload":{"n":1}}}`,
	envelope.CLowl: `{"clowl":"0.2","mid":%q,"ts":1709078400,"p":"REQ","from":"ann","to":%q,"cid":"c1",` +
		`"body":{"t":"work","d":{"description":"count the birds","n":1}}}`,
	envelope.CAP: `{"type":"delegation_notice","task_id":%q,"sender_id":"ann","recipient_id":%q,"context_summary":"count the birds","attachments":[],"timestamp":"2026-01-01T00:00:00Z"}`,
	envelope.Clutch: `{"v":"clutch/0.1","id":"msg_%[1]s","ts":"2026-01-01T00:00:00.000Z","thread_id":"c1","run_id":"run_%[1]s","task_id":%[1]q,"parent_task_id":null,` +
		`"from":{"agent_id":"agent:ann"},"to":[{"agent_id":"agent:%[2]s"}],"type":"task.request","payload_type":"work","payload":{"title":"count the birds","n":1}}`,
}

// sendRequest appends a request of "ann" to a task file: ask DIALECT ID AGENT.
func sendRequest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: ask dialect id agent")
	}
	appendTo(ts, taskFile, fmt.Sprintf(requests[envelope.Dialect(args[0])], args[1], args[2])+"\n")
}

// awaitAnswer blocks until the requester "ann" has the result of a task, and wants
// exactly one, in the dialect of its request, with a text: answered DIALECT ID TEXT.
func awaitAnswer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: answered dialect id text")
	}
	d, id, text := envelope.Dialect(args[0]), args[1], args[2]
	result := filepath.Join("box", "results", id+".json")
	awaitFile(ts, false, []string{result})
	field(ts, false, []string{result, "status", "ok"})
	field(ts, false, []string{result, "output.summary", text})
	if d == envelope.AINL {
		return // its result file is its answer
	}
	inbox := filepath.Join("box", "agents", "ann", "inbox.jsonl")
	await(ts, append([]string{"answered"}, args...), ts.MkAbs("box"), func() bool {
		content, _ := os.ReadFile(ts.MkAbs(inbox))
		return len(resultsIn(string(content), d, id)) > 0
	})
	got := resultsIn(ts.ReadFile(inbox), d, id)
	if len(got) != 1 || !strings.Contains(got[0], text) {
		ts.Fatalf("the results of %s in %s are %q; want one with %q", id, inbox, got, text)
	}
}

// resultsIn lists the lines of an inbox that are a result of a task in a dialect.
func resultsIn(inbox string, d envelope.Dialect, id string) (lines []string) {
	for line := range strings.Lines(inbox) {
		var m struct{ Pid, P, Task_id, Type string }
		if json.Unmarshal([]byte(line), &m) != nil {
			continue
		}
		clowl := d == envelope.CLowl && m.Pid == id && (m.P == "DONE" || m.P == "ERR")
		cap := d == envelope.CAP && m.Task_id == id && (m.Type == "message" || m.Type == "error_response")
		clutch := d == envelope.Clutch && m.Task_id == id && slices.Contains([]string{"task.result", "task.error", "task.timeout", "task.cancel"}, m.Type)
		if clowl || cap || clutch {
			lines = append(lines, line)
		}
	}
	return lines
}

// wellFormed says what is wrong with a request in a dialect, as its reader sees it.
func wellFormed(d envelope.Dialect, line []byte) (envelope.Task, error) {
	if err := strictly(string(line)); err != nil {
		return envelope.Task{}, err
	}
	t, findings := dialect.DecodeTask(d, line, envelope.Strict)
	if findings.Refused() || !strings.Contains(t.Description, "count the birds") {
		return t, fmt.Errorf("%s is no request for birds in %s: %v", line, d, findings)
	}
	return t, nil
}

// countBirds is an agent of each binding. It exits with an error when a request is
// not well-formed in the dialect that its first argument names. With a second
// argument it is a worker.
func countBirds() {
	d := envelope.Dialect(os.Args[2])
	answers := map[envelope.Dialect]string{
		envelope.AINL:   `{"task_id":%q,"status":"ok","output":{"summary":"%s birds","actions":[]}}`,
		envelope.CLowl:  `{"task":%q,"p":"DONE","body":{"t":"work","d":{"summary":"%s birds"}}}`,
		envelope.CAP:    `{"type":"message","task_id":%q,"content":"%s birds"}`,
		envelope.Clutch: `{"task_id":%q,"type":"task.result","payload":{"summary":"%s birds","birds":3}}`,
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) == 0 && err != nil {
			return
		}
		t, bad := wellFormed(d, line)
		if bad != nil {
			fmt.Fprintln(os.Stderr, bad)
			os.Exit(3)
		}
		if d == envelope.Clutch && len(os.Args) > 3 { // only a worker says it at once
			fmt.Printf(`{"task_id":%q,"type":"task.progress","payload":{"status":"counting","progress":50}}`+"\n", t.ID)
		}
		fmt.Printf(answers[d]+"\n", t.ID, d)
		if len(os.Args) < 4 {
			return
		}
	}
}

// holdRequests wants each line of an inbox to be a well-formed request:
// wellformed DIALECT FILE NUMBER.
func holdRequests(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: wellformed dialect file number")
	}
	n := 0
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		_, err := wellFormed(envelope.Dialect(args[0]), []byte(strings.TrimSuffix(line, "\n")))
		ts.Check(err)
		n++
	}
	if fmt.Sprint(n) != args[2] {
		ts.Fatalf("%s has %d lines; want %s", args[1], n, args[2])
	}
}
