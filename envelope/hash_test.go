package envelope_test

import (
	"testing"

	"mailboxd/envelope"
)

func hashOf(t *testing.T, payload string) string {
	t.Helper()
	task, findings := decode(t, request("input", `{"payload":`+payload+`}`))
	if findings.Refused() {
		t.Fatalf("%s: %v", payload, findings)
	}
	return task.Hash
}

// The hash tells a resent task from a revision.
func TestTheHashDependsOnTheContentAndNotOnTheLayout(t *testing.T) {
	for _, same := range [][2]string{
		{`{"a":1,"b":[2,{"c":3,"d":4}]}`, "{ \"b\" : [ 2 ,\t{\"d\":4,\"c\":3}],\r\n\"a\":1}"},
		{`"aé/😀"`, `"\u0061\u00e9\/\ud83d\ude00"`},
		{`{"a":1,"\u0062":2}`, `{"b":2,"a":1}`},
		{`"\ud800"`, `"\ud800"`},
	} {
		if hashOf(t, same[0]) != hashOf(t, same[1]) {
			t.Errorf("%s and %s have different hashes; want one", same[0], same[1])
		}
	}
	different := []string{
		`1`, `1.0`, `1e0`, `"1"`, `-0`, `0`, `9007199254740993`, `9007199254740992`,
		`true`, `false`, `null`, `"true"`, `"null"`, `""`, `[]`, `{}`, `[[]]`, `[[],[]]`, `[{}]`, `{"":{}}`, `{"":[]}`,
		`["a","b"]`, `["b","a"]`, `["ab"]`, `["a",["b"]]`, `[["a"],"b"]`, `{"a":"b"}`, `{"b":"a"}`, `{"ab":""}`,
		`{"a":{"b":1}}`, `{"a":{},"b":1}`, `"é"`, `"e\u0301"`, `"\ud800"`, `"\ud801"`, `"\ufffd"`, `"\u0000"`,
		`"\"\\ud800\""`, `[1,2]`, `[12]`, `[1,[2]]`,
	}
	seen := map[string]string{}
	for _, payload := range different {
		hash := hashOf(t, payload)
		if before, ok := seen[hash]; ok {
			t.Errorf("%s and %s have the same hash; want two", before, payload)
		}
		seen[hash] = payload
	}
}

// The ledger remembers hashes from one version of the program to the next.
func TestTheHashDoesNotChangeBetweenVersions(t *testing.T) {
	task, _ := envelope.DecodeTask(fixture(t, "request-task-2026-03-09-0001.json"), envelope.Strict)
	const want = "943e1b59"
	if task.Hash[:8] != want {
		t.Errorf("hash = %s; want %s...", task.Hash, want)
	}
}
