package agent

import (
	"bytes"
	"strings"
	"testing"

	"mailboxd/envelope/dialect"
)

// FuzzFindObject: whatever is found is one whole object, taken from the text
// as it stands, and finding it again finds the same.
func FuzzFindObject(f *testing.F) {
	for _, seed := range []string{
		`{"a": 1}`, "log\n{\"a\": 1}\nlog", "```json\n{}\n```", "\x1b[1m{}\x1b[0m", "\uFEFF{}", "{\"a\":\n{}\n",
		`{"task_id": "a"}` + "\n" + `{"task_id": "b"}`, "{}{}", strings.Repeat("{\"a\":[\n", 200), "{\"a\": \"\xff\"}",
	} {
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, whole bool) {
		object, err := findObject(text, whole)
		if (err == nil) == (object == nil) {
			t.Fatalf("findObject = %q, %v; want either", object, err)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(dialect.OneObject(object), object) {
			t.Errorf("%q is not one whole object", object)
		}
		if !bytes.Contains(dialect.Plain(text), object) {
			t.Errorf("%q is not part of the text", object)
		}
		if again, err := findObject(object, true); err != nil || !bytes.Equal(again, object) {
			t.Errorf("found again: %q, %v; want %q", again, err, object)
		}
	})
}

// BenchmarkAnswerInALongLog: an answer costs little, however long the log is
// before it.
func BenchmarkAnswerInALongLog(b *testing.B) {
	text := append(bytes.Repeat([]byte("2026-03-09 INFO working {on} it\n"), maxWhole/33), `{"summary": "done"}`...)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := findObject(text, true); err != nil {
			b.Fatal(err)
		}
	}
}
