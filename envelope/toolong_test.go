package envelope_test

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"mailboxd/envelope"
)

func TestOnlyALineThatIsWholeJSONHasAnOutline(t *testing.T) { // row 10
	big := strings.Repeat("x", 100_000)
	for _, c := range []struct{ line, want string }{
		{`{"task_id":"a","x":1}`, `{"task_id":"a"}`},
		{" {\t\"input\" : {\"payload\":\"" + big + "\"} , \"task_id\" : \"a\" } \r", `{"task_id":"a"}`},
		{`{"input":{"task_id":"b"},"list":[{"task_id":"c"}],"task_id":"a"}`, `{"task_id":"a"}`},
		{`{"task\u005fid":"\u0061é\ud800"}`, `{"task\u005fid":"\u0061é\ud800"}`},
		{`{"task_id":20260309,"v":-1.5e+3}`, `{"task_id":20260309,"v":-1.5e+3}`},
		{`{"task_id":null,"to":["a","b"],"from":{"x":{}},"p":true}`, `{"task_id":null,"to":[],"from":{},"p":true}`},
		{`{"task_id":"a","task_id":"b","task_id":"c"}`, `{"task_id":"a","task_id":"b"}`}, // which is refused for both
		{`{"type":"` + big + `","id":` + strings.Repeat("1", 9000) + `,"task_id":"a"}`, `{"type":null,"id":null,"task_id":"a"}`},
		{`{"` + big + `":1,"task_id":"a"}`, `{"task_id":"a"}`},
		{`{` + strings.Repeat(`"p":1,`, 10_000) + `"task_id":"a"}`, `{"p":1,"p":1,"task_id":"a"}`},
		{`{}`, `{}`},
		{`{"x":[[],{},[1,{"y":"\"\\\/\b\f\n\r\t"}],true,false,null,0,-0,1e9]}`, `{}`},

		{``, ""}, {`[]`, ""}, {`"task_id"`, ""}, {`{"task_id":"a"`, ""}, {`{"task_id":"a"}}`, ""},
		{`{"task_id":"a"}{"task_id":"b"}`, ""}, {`{"task_id":"a",}`, ""}, {`{"task_id" "a"}`, ""}, {`{task_id:"a"}`, ""},
		{`{"task_id":"a","x":NaN}`, ""}, {`{"task_id":"a","x":01}`, ""}, {`{"task_id":"a","x":1.}`, ""}, {`{"task_id":"a","x":-}`, ""},
		{`{"task_id":"a","x":1e}`, ""}, {`{"task_id":"a","x":tru}`, ""}, {`{"task_id":"a","x":"\x"}`, ""}, {`{"task_id":"a","x":"\u00g0"}`, ""},
		{"{\"task_id\":\"a\",\"x\":\"\xff\"}", ""}, {"{\"task_id\":\"a\",\"x\":\"\x00\"}", ""}, {"{\"task_id\":\"a\",\"x\":\"\xed\xa0\x80\"}", ""},
		{"\x00{\"task_id\":\"a\"}", ""}, {"\ufeff{\"task_id\":\"a\"}", ""}, {`{"task_id":"a","x":[1,]}`, ""}, {`{"task_id":"a","x":[1}`, ""},
		{`{"task_id":"a","x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, ""},
	} {
		long, err := envelope.ReadLong(iotest.OneByteReader(strings.NewReader(c.line)), int64(len(c.line)))
		if err != nil || string(long.Outline) != c.want {
			t.Errorf("ReadLong(%.80q) = %s, %v; want %s", c.line, long.Outline, err, c.want)
		}
		if again := envelope.LongText([]byte(c.line)); string(again.Outline) != c.want || again.SHA256 != long.SHA256 || len(long.SHA256) != 64 {
			t.Errorf("LongText(%.80q) = %s, %s; want %s, %s", c.line, again.Outline, again.SHA256, c.want, long.SHA256)
		}
	}
}

// A read that fails says nothing about the line.
func TestALineThatCannotBeReadToItsEndIsNotJudged(t *testing.T) {
	line := `{"x":"` + strings.Repeat("x", 200_000) + `","task_id":"a"}`
	for _, cut := range []int{0, 1, 100_000, len(line) - 1} {
		if _, err := envelope.ReadLong(strings.NewReader(line[:cut]), int64(len(line))); err != io.ErrUnexpectedEOF {
			t.Errorf("ReadLong of %d bytes of %d: %v; want %v", cut, len(line), err, io.ErrUnexpectedEOF)
		}
		broken := io.MultiReader(strings.NewReader(line[:cut]), iotest.ErrReader(io.ErrClosedPipe))
		if _, err := envelope.ReadLong(broken, int64(len(line))); err != io.ErrClosedPipe {
			t.Errorf("ReadLong of what breaks after %d bytes: %v; want %v", cut, err, io.ErrClosedPipe)
		}
	}
}

func TestALongLineIsReadInTheMemoryOfAShortOne(t *testing.T) { // row 10
	head, tail := `{"x":`+strings.Repeat(`[{"y":`, 4000)+`"`, `"`+strings.Repeat(`}]`, 4000)+`,"task_id":"late"}`
	fill := int64(envelope.MostStreamed - len(head) - len(tail))
	read := func(more int64) (envelope.LongLine, uint64) {
		line := io.MultiReader(strings.NewReader(head), io.LimitReader(xs{}, fill+more), strings.NewReader(tail))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		long, err := envelope.ReadLong(line, int64(len(head)+len(tail))+fill+more)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		return long, after.TotalAlloc - before.TotalAlloc
	}
	long, took := read(0)
	if string(long.Outline) != `{"task_id":"late"}` {
		t.Errorf("the outline of a line of %d bytes is %q; want its task_id", long.Length, long.Outline)
	}
	if took > 1<<20 {
		t.Errorf("a line of %d bytes took %d bytes of memory; want at most 1 MiB", long.Length, took)
	}
	if long, _ = read(1); long.Outline != nil || long.SHA256 != "" {
		t.Errorf("a line of %d bytes has the outline %q; want none", long.Length, long.Outline)
	}
}

// xs is an unlimited row of x.
type xs struct{}

func (xs) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// The stream reader accepts the same lines as the reader of whole lines.
func FuzzAnOutlineIsOfJSONAsItIsReadElsewhere(f *testing.F) {
	for _, c := range broken {
		f.Add([]byte(c.text))
	}
	f.Add([]byte(`{"task_id":"a","x":[1,-0.5e+7,true,false,null,"\ud800\\é"]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if strings.ContainsAny(string(line), "\n") || bytes.Count(line, []byte("{"))+bytes.Count(line, []byte("[")) > 100 {
			return
		}
		_, findings := envelope.ContentHash(line)
		kind := findings.Kind()
		whole := kind != envelope.InvalidJSON && findings.String() != "must be a JSON object"
		outline := envelope.LongText(line).Outline
		if (outline != nil) != whole {
			t.Fatalf("%q has the outline %q; it is read elsewhere as %v", line, outline, findings)
		}
		if outline == nil {
			return
		}
		task, _ := envelope.DecodeTask(line, envelope.Strict)
		brief, _ := envelope.DecodeTask(outline, envelope.Strict)
		if task.ID != brief.ID && len(line) < 4<<10 {
			t.Fatalf("%q is of task %q, and its outline %q of %q", line, task.ID, outline, brief.ID)
		}
	})
}
