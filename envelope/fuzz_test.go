package envelope_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// An accepted envelope has a safe id, is one JSON object of the line, and reads the same when
// the ledger reads it again.
func FuzzReadLine(f *testing.F) {
	for line := range bytes.Lines(fixture(f, "upstream-requests.jsonl")) {
		f.Add(line)
		f.Add(append(line[:len(line)/2:len(line)/2], line...))
		f.Add(append(bytes.TrimSpace(line), line...))
	}
	f.Add(fixture(f, "request-task-2026-03-09-0001.json"))
	f.Add(fixture(f, "result-task-2026-03-09-0001.json"))
	f.Add([]byte(request("task_id", "7")))
	f.Add([]byte(request("callback", `{"file_append":"a/b"}`)))
	for _, line := range hostile(64) {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		rest := line
		for _, p := range envelope.ReadLine(line, envelope.Strict) {
			at := bytes.Index(rest, p.Task.Raw)
			if at < 0 {
				t.Fatalf("piece %q does not come next in %q", p.Task.Raw, rest)
			}
			rest = rest[at+len(p.Task.Raw):]
			if p.Task.ID != "" {
				checkID(t, p.Task.ID)
			}
			if !p.Findings.Refused() {
				checkTaken(t, p.Task)
			}
		}
		if len(bytes.Trim(rest, " \t\r\n")) > 0 {
			t.Fatalf("%q belongs to no piece", rest)
		}
	})
}

func checkID(t *testing.T, id envelope.ID) {
	t.Helper()
	again, err := envelope.ParseID(string(id))
	if err != nil || again != id || strings.ContainsAny(string(id), "/\x00\n") || len(id)+len(".json") > 255 {
		t.Fatalf("id %q is not safe: %v", id, err)
	}
}

func checkTaken(t *testing.T, task envelope.Task) {
	t.Helper()
	if task.ID == "" || task.Agent == "" || task.Requester == "" || task.Type == "" {
		t.Fatalf("taken without id, agent, requester or type: %+v", task)
	}
	if !jsontext.Value(task.Raw).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) {
		t.Fatalf("%q was taken and is not JSON", task.Raw)
	}
	if file := task.Callback.FileAppend; strings.Contains(file, "..") && strings.Contains("/"+file+"/", "/../") || strings.HasPrefix(file, "/") {
		t.Fatalf("callback %q leaves the root", file)
	}
	again, findings := envelope.DecodeTask(task.Raw, envelope.Strict)
	if findings.Refused() || again.Hash != task.Hash || again.ID != task.ID {
		t.Fatalf("read again: id %q hash %s, %v; want %q %s", again.ID, again.Hash, findings, task.ID, task.Hash)
	}
}

// FuzzScan compares the scanner with the JSON library.
func FuzzScan(f *testing.F) {
	for _, text := range []string{"{}", `{"a":[1,-0.5e+7,"\u00e9\ud800",true,null]}`, `{"a":1,"a":2}`, "{\"a\":\"\x7f\"}", `{"a":01}`, "\ufeff{}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		isJSON := jsontext.Value(text).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) &&
			utf8.Valid(text)
		_, findings := envelope.DecodeTask(text, envelope.Strict)
		refused := findings.Kind() == envelope.InvalidJSON
		if tooDeep := strings.Contains(findings.String(), "too deep"); isJSON == refused && !tooDeep {
			t.Fatalf("%q: JSON for the library: %v; findings: %v", text, isJSON, findings)
		}
	})
}

// Two orders of the same members have one hash, two contents have two.
func FuzzHash(f *testing.F) {
	f.Add("a", "b", `1`, `"x"`)
	f.Add("", "\u00e9", `[1,{"c":2}]`, `{"d":null}`)
	f.Add("a", "a", `1`, `1.0`)
	f.Fuzz(func(t *testing.T, name1, name2, value1, value2 string) {
		member := func(name, value string) string {
			quoted, _ := jsontext.AppendQuote(nil, name)
			return string(quoted) + ":" + value
		}
		hash := func(members ...string) (string, bool) {
			task, findings := envelope.DecodeTask([]byte(request("input", `{"payload":{`+strings.Join(members, " ,\t")+`}}`)), envelope.Strict)
			return task.Hash, !findings.Refused()
		}
		if one, ok := hash(member(name1, value1), member(name2, value2)); ok {
			if other, ok := hash(member(name2, value2), member(name1, value1)); !ok || one != other {
				t.Fatalf("the order of %q and %q counts", name1, name2)
			}
		}
		one, ok1 := hash(member(name1, value1))
		other, ok2 := hash(member(name1, value2))
		text1, text2 := jsontext.Value(value1), jsontext.Value(value2)
		normal := []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.ReorderRawObjects(true)}
		if text1.Format(normal...) != nil || text2.Format(normal...) != nil {
			return // not a value but several, or part of one
		}
		if ok1 && ok2 && one == other && string(text1) != string(text2) {
			t.Fatalf("%s and %s have one hash", value1, value2)
		}
	})
}

// A result reads the same after it is decoded and encoded.
func FuzzResultRoundTrip(f *testing.F) {
	f.Add(fixture(f, "result-task-2026-03-09-0001.json"))
	f.Add(fixture(f, "result-demo-openclaw-monitor-001.json"))
	f.Add([]byte(`{"agent_id":"a","status":"done","confidence":7,"needs_review":true,"x":[1.0]}`))
	f.Add([]byte(`{"agent_id":"a","output":{"summary":"s","enforcement":{"tools":"kernel","\u0061":"b"}}}`))
	f.Add([]byte(`{"summary":"x","actions":[{"kind":"a","status":"?","more":"\ud800"}],"status":"ok","error":1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		result, findings := envelope.DecodeAnswer(raw)
		if findings.Refused() {
			return
		}
		if result.TaskID == "" {
			result.TaskID = "t"
		}
		if result.AgentID == "" {
			result.AgentID = "a"
		}
		file := result.Encode()
		again, findings := envelope.DecodeResult(file)
		if findings.Refused() {
			t.Fatalf("%s\nbecame %s\nwhich is refused: %v", raw, file, findings)
		}
		again.Review = result.Review // odd values are noted again, by their new path
		if second := again.Encode(); !bytes.Equal(file, second) {
			t.Fatalf("%s\nbecame %s\nand then %s", raw, file, second)
		}
		line := again.EncodeLine()
		if bytes.IndexByte(line, '\n') != len(line)-1 {
			t.Fatalf("%q is not one line", line)
		}
	})
}
