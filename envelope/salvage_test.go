package envelope_test

import (
	"strings"
	"testing"

	"mailboxd/envelope"
)

// broken are texts that are no envelope, and the id of each.
var broken = []struct {
	about, text string
	want        envelope.ID
}{
	{"a whole line", named("a"), "a"},
	{"white space", "{ \"task_id\" :\t\"a\" }", "a"},
	{"row 4: NaN before it", `{"x":NaN,"task_id":"a"}`, "a"},
	{"row 1: bad UTF-8 elsewhere", "{\"x\":\"\xff\",\"task_id\":\"a\"}", "a"},
	{"row 1: bad UTF-8 in it", "{\"task_id\":\"a\xff\"}", ""},
	{"row 7: a byte order mark", "\ufeff" + named("a"), "a"},
	{"row 9: after a hole", "\x00\x00" + named("a")[:60], "a"},
	{"row 10: the head of a long line", `{"task_id":"a","input":{"payload":"` + strings.Repeat("x", 64<<10), "a"},
	{"row 10: the head of a long line that ends in white space", `{"task_id":"a" ` + strings.Repeat(" ", 1<<20), "a"}, // hours, byte by byte
	{"row 11: deep nesting around", strings.Repeat(`{"x":`, 1000) + `{"task_id":"a"}`, ""},
	{"row 11: deep nesting before", `{"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `,"task_id":"a"}`, "a"},
	{"row 20: an integer", `{"task_id":20260309,"x":NaN}`, "20260309"},
	{"an integer that may be cut off", `{"task_id":2026`, ""},
	{"a string that is cut off", `{"task_id":"2026`, ""},
	{"a float", `{"task_id":1.5,"x":NaN}`, ""},
	{"null", `{"task_id":null,"x":NaN}`, ""},
	{"an object", `{"task_id":{"task_id":"a"},"x":NaN}`, ""},
	{"row 2: twice the same", `{"task_id":"a","task_id":"a"}`, "a"},
	{"row 2: two different", `{"task_id":"a","task_id":"b"}`, ""},
	{"row 2: one of two is no id", `{"task_id":"a","task_id":7.5}`, ""},
	{"row 3: another case", `{"TASK_ID":"a","x":NaN}`, ""},
	{"row 6: half a surrogate pair", `{"task_id":"\ud800","x":NaN}`, ""},
	{"an escaped name", `{"task\u005fid":"a","x":NaN}`, "a"},
	{"an escaped id", `{"task_id":"\u0061","x":NaN}`, "a"},
	{"row 15: an unsafe id", `{"task_id":"../x","x":NaN}`, ""},
	{"row 15: an unsafe id, escaped", `{"task_id":"..\u002fx","x":NaN}`, ""},
	{"inside another field", `{"input":{"task_id":"a"},"x":NaN}`, ""},
	{"inside a string", `{"x":"\"task_id\":\"a\"",NaN}`, ""},
	{"as a value", `{"x":"task_id","y":"a",NaN}`, ""},
	{"the end of a torn line", `ct":{"task_id":"a"}}`, ""},
	{"a list", `["task_id":"a"]`, ""},
	{"two broken objects", `{"task_id":"a",NaN}{"task_id":"b",NaN}`, ""},
	{"nothing", "", ""},
	{"no name at all", `{"task_id"`, ""},
	{"no value at all", `{"task_id":`, ""},
	{"only space after the name", `{"task_id": `, ""},
}

func TestSalvageFindsTheIDOfABrokenLine(t *testing.T) {
	for _, c := range broken {
		if got := envelope.Salvage([]byte(c.text)); got != c.want {
			t.Errorf("%s: Salvage(%.60q) = %q; want %q", c.about, c.text, got, c.want)
		}
	}
}

func TestAnIntegerNamesNoParticipantInABrokenLine(t *testing.T) {
	for text, want := range map[string]string{
		`{"sender_id":7,"message":"torn`:     "",
		`{"sender_id":"7","message":"torn`:   "7",
		`{"sender_id":"bob","message":"torn`: "bob",
	} {
		if got := envelope.ScrapString([]byte(text), "sender_id"); got != want {
			t.Errorf("ScrapString(%s) = %q; want %q", text, got, want)
		}
	}
}
