package mailbox_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailboxd/mailbox"
)

// A reader is a tail with the cursors and lines that its caller has saved.
type reader struct {
	*mailbox.Tail
	t       testing.TB
	cursors map[string]mailbox.Cursor
}

func tail(t testing.TB, box *mailbox.Box, opts mailbox.TailOptions, cursors ...mailbox.Cursor) *reader {
	r := &reader{Tail: box.Tail(cursors, opts), t: t, cursors: map[string]mailbox.Cursor{}}
	t.Cleanup(func() { r.Close() })
	return r
}

// rest reads all there is.
func (r *reader) rest() (lines []mailbox.Line) {
	r.t.Helper()
	for {
		batch, err := r.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		if batch.Empty() {
			return lines
		}
		r.Ahead() // the lines are the same with it
		lines = append(lines, batch.Lines...)
		for _, c := range append(batch.More, batch.Cursor) {
			r.cursors[c.Path] = c
		}
		r.Done(batch)
	}
}

// want fails unless the next lines are these.
func (r *reader) want(texts ...string) []mailbox.Line {
	r.t.Helper()
	lines := r.rest()
	if diff := cmp.Diff(texts, raws(lines)); diff != "" {
		r.t.Errorf("lines (-want +got):\n%s", diff)
	}
	return lines
}

// again opens another tail at the saved cursors, as a restart does.
func (r *reader) again(box *mailbox.Box, opts mailbox.TailOptions) *reader {
	r.Close()
	return tail(r.t, box, opts, slices.Collect(maps.Values(r.cursors))...)
}

func raws(lines []mailbox.Line) (texts []string) {
	for _, line := range lines {
		texts = append(texts, string(line.Raw))
	}
	return texts
}

func TestLineFeedsSeparateLines(t *testing.T) { // rows 7, 8, 9 and 12
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"two lines", "a\nb\n", []string{"a", "b"}},
		{"an unfinished line stays", "a\n{\"b\":1}", []string{"a"}},
		{"CRLF", "a\r\nb\r\n", []string{"a", "b"}},
		{"only one CR goes", "a\r\r\n", []string{"a\r"}},
		{"a lone CR is data", "a\rb\n", []string{"a\rb"}},
		{"U+2028, VT and FF are data", "a\u2028b\vc\fd\n", []string{"a\u2028b\vc\fd"}},
		{"trailing spaces stay", "a  \n", []string{"a  "}},
		{"blank lines", "\n\r\n \t\na\n\n\nb\n\n", []string{"a", "b"}},
		{"only blank lines", "\n \n", nil},
		{"BOM at the start", "\uFEFFa\nb\n", []string{"a", "b"}},
		{"BOM elsewhere", "a\n\uFEFFb\n", []string{"a", "\uFEFFb"}},
		{"only one BOM", "\uFEFF\uFEFFa\n", []string{"\uFEFFa"}},
		{"UTF-16", "\xff\xfea\x00\n\x00", []string{"\xff\xfea\x00"}},
		{"NUL", "\x00\x00a\nb\n", []string{"\x00\x00a", "b"}},
		{"bad UTF-8", "\xff\nb\n", []string{"\xff", "b"}},
		{"nothing", "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			box := open(t)
			write(t, box.TasksDir()+"/x.jsonl", test.text)
			r := tail(t, box, mailbox.TailOptions{})
			r.want(test.want...)
			if got, want := r.cursors["tasks/x.jsonl"].Offset, int64(strings.LastIndexByte(test.text, '\n')+1); got != want {
				t.Errorf("cursor at %d, want %d", got, want)
			}
			r.again(box, mailbox.TailOptions{}).want()
		})
	}
}

func TestTheFirstReadingOfAllIsNoRepetition(t *testing.T) {
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "a\n")
	r := tail(t, box, mailbox.TailOptions{})
	if lines := r.want("a"); lines[0].Replayed {
		t.Error("a line found at the very first look is Replayed, want not")
	}
	write(t, box.TasksDir()+"/copy.jsonl", "a\n")
	if lines := r.want("a"); !lines[0].Replayed {
		t.Error("a line of a copy that appeared later is not Replayed")
	}
}

func TestALineHasItsOffset(t *testing.T) {
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "\uFEFFa\r\n\nbc\n")
	r := tail(t, box, mailbox.TailOptions{})
	got := r.rest()
	add(t, box.TasksDir()+"/x.jsonl", "d\n")
	got = append(got, r.rest()...)
	want := []mailbox.Line{
		{File: "tasks/x.jsonl", Offset: 0, End: 6, Raw: []byte("a"), Length: 1},
		{File: "tasks/x.jsonl", Offset: 7, End: 10, Raw: []byte("bc"), Length: 2},
		{File: "tasks/x.jsonl", Offset: 10, End: 12, Raw: []byte("d"), Length: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestABatchComesAgainUntilItIsDone(t *testing.T) {
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "a\nb\n")
	r := tail(t, box, mailbox.TailOptions{BatchLines: 1})
	first, err := r.Next()
	must(t, err)
	add(t, box.TasksDir()+"/x.jsonl", "c\n")
	second, err := r.Next()
	must(t, err)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("second Next (-first +second):\n%s", diff)
	}
	r.again(box, mailbox.TailOptions{}).want("a", "b", "c") // a crash before Done
}

func TestReadingGoesOnWhereItStopped(t *testing.T) {
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", "a\nb\n")
	r := tail(t, box, mailbox.TailOptions{})
	r.want("a", "b")
	add(t, box.TasksDir()+"/x.jsonl", "c\nd") // while nobody looks
	r = r.again(box, mailbox.TailOptions{})
	lines := r.want("c")
	if lines[0].Replayed {
		t.Error("an appended line is Replayed, want not")
	}
	add(t, box.TasksDir()+"/x.jsonl", "d\n")
	r.again(box, mailbox.TailOptions{}).want("dd")
}

func TestEveryLineComesOnceWhereverReadingIsCutOff(t *testing.T) {
	box := open(t)
	var want []string
	for n := range 30 {
		line := strings.Repeat(fmt.Sprint(n, " "), n*n) // from nothing to several blocks
		add(t, box.TasksDir()+"/x.jsonl", line+"\n\n")
		if line != "" {
			want = append(want, line)
		}
	}
	var got []string
	r := tail(t, box, mailbox.TailOptions{BatchLines: 1, MaxLine: 3000})
	for range want {
		batch, err := r.Next()
		must(t, err)
		for _, line := range batch.Lines {
			got = append(got, string(line.Raw))
		}
		r.cursors[batch.Cursor.Path] = batch.Cursor // and no Done: killed right after the record
		r = r.again(box, mailbox.TailOptions{BatchLines: 1, MaxLine: 3000})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	r.want()
}

func TestFilesTakeTurns(t *testing.T) { // row 45
	box := open(t)
	write(t, box.TasksDir()+"/a.jsonl", strings.Repeat("a\n", 4))
	write(t, box.TasksDir()+"/b.jsonl", strings.Repeat("b\n", 2))
	tail(t, box, mailbox.TailOptions{BatchLines: 1}).want("a", "b", "a", "b", "a", "a")
}

func TestFromEndSkipsOnlyExistingLines(t *testing.T) { // row 45
	box := open(t)
	write(t, box.TasksDir()+"/x.jsonl", strings.Repeat("old\n", 1000)+"unfin")
	opts := mailbox.TailOptions{FromEnd: true}
	r := tail(t, box, opts)
	r.want()
	add(t, box.TasksDir()+"/x.jsonl", "ished\n")
	write(t, box.TasksDir()+"/y.jsonl", "new\n")
	r.want("unfinished", "new")
	add(t, box.TasksDir()+"/x.jsonl", "more\n")
	r.again(box, opts).want("more")
}

func TestALineThatIsTooLongIsSkippedInBoundedMemory(t *testing.T) { // row 10
	box := open(t)
	path := box.TasksDir() + "/x.jsonl"
	long := strings.Repeat("x", 100<<20)
	write(t, path, "a\n"+long)
	r := tail(t, box, mailbox.TailOptions{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r.want("a") // no line feed yet
	add(t, path, "y\r\nb\n")
	lines := r.rest()
	runtime.ReadMemStats(&after)
	want := []mailbox.Line{
		{File: "tasks/x.jsonl", Offset: 2, End: int64(len(long)) + 5, Raw: []byte(long[:64<<10]), Length: int64(len(long)) + 1, TooLong: true},
		{File: "tasks/x.jsonl", Offset: int64(len(long)) + 5, End: int64(len(long)) + 7, Raw: []byte("b"), Length: 1},
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%.2000s", diff)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 2*uint64(len(long)) {
		t.Errorf("allocated %d bytes in all for a line of %d; want every byte read once", got, len(long))
	}
	r.again(box, mailbox.TailOptions{}).want()
}

func TestTheLimitIsOnTheLineWithoutItsEnding(t *testing.T) { // row 10
	for _, want := range []int{1, 8, 64} { // sizes of batches
		for length := 7; length <= 10; length++ {
			box := open(t)
			text := strings.Repeat("x", length)
			write(t, box.TasksDir()+"/x.jsonl", text+"\r\n"+text+"\nb\n")
			lines := tail(t, box, mailbox.TailOptions{MaxLine: 8, BatchBytes: int64(want)}).rest()
			if len(lines) != 3 || lines[0].TooLong != (length > 8) || lines[1].TooLong != (length > 8) || lines[0].Length != int64(length) {
				t.Errorf("lines of %d bytes by %d = %+v; want TooLong to be %v", length, want, lines, length > 8)
			}
		}
	}
}

func TestAHoleIsOneLineHoweverLarge(t *testing.T) { // row 9
	box := open(t)
	path := box.TasksDir() + "/x.jsonl"
	write(t, path, "a\n")
	must(t, os.Truncate(path, 1<<42))
	r := tail(t, box, mailbox.TailOptions{})
	r.want("a")
	add(t, path, "rest of it\nb\n")
	lines := r.rest()
	if len(lines) != 3 || !lines[0].TooLong || lines[0].End != 1<<42 || string(lines[1].Raw) != "rest of it" || string(lines[2].Raw) != "b" {
		t.Errorf("got %d lines; want the hole as one, the rest of it, and b", len(lines))
	}
}

func TestALineBehindALongHoleIsALineOfItsOwn(t *testing.T) { // row 9
	hole := strings.Repeat("\x00", 3000)
	for _, batch := range []int64{1, 100, 1 << 20} {
		for _, text := range []string{"\n", "\r\n"} {
			box := open(t)
			path := box.TasksDir() + "/x.jsonl"
			r := tail(t, box, mailbox.TailOptions{MaxLine: 1024, BatchBytes: batch})
			add(t, path, "a\n"+hole)
			r.want("a")
			add(t, path, "b"+text+hole+text+"c\n")
			lines := r.rest()
			if len(lines) != 4 || !lines[0].TooLong || lines[0].Length != 3000 || string(lines[1].Raw) != "b" || !lines[2].TooLong || string(lines[3].Raw) != "c" {
				t.Errorf("got %d lines by %d bytes; want a hole, b, a hole, c", len(lines), batch)
			}
			r.again(box, mailbox.TailOptions{MaxLine: 1024}).want()
		}
	}
}

func TestTenThousandFilesAreRead(t *testing.T) { // row 45
	box := open(t)
	var want []string
	for n := range 10_000 {
		want = append(want, fmt.Sprintf("%05d", n))
		write(t, filepath.Join(box.TasksDir(), want[n]+".jsonl"), want[n]+"\n")
	}
	r := tail(t, box, mailbox.TailOptions{})
	r.want(want...)
	add(t, box.TasksDir()+"/07777.jsonl", "more\n")
	r.want("more")
	r = r.again(box, mailbox.TailOptions{})
	r.want()
	add(t, box.TasksDir()+"/00000.jsonl", "most\n")
	r.want("most")
}

func FuzzLinesAreThoseOfTheFileHoweverItIsRead(f *testing.F) {
	f.Add([]byte("a\r\n\nb\n\uFEFFc"), uint8(1), uint8(3))
	f.Add([]byte("a\n\x00\x00\x00\x00\x00\x00\x00\x00\x00b\r\n"), uint8(3), uint8(5))
	f.Add([]byte("\x000000000\r\n"), uint8('*'), uint8(5))
	f.Add([]byte("\uFEFFlong long long line\n\n\nx\n"), uint8(5), uint8(9))
	f.Add([]byte("\uFEFF\x00\x00\x00\x10 long long line\n"), uint8(5), uint8(1))
	f.Add([]byte("\uFEFF\x00\x00\x00\x00\x00\x00\x00\x00{}\n"), uint8(0), uint8(0))
	f.Fuzz(func(t *testing.T, text []byte, batch, pause uint8) {
		box := open(t)
		path := box.TasksDir() + "/x.jsonl"
		r := tail(t, box, mailbox.TailOptions{MaxLine: 8, BatchBytes: int64(batch), BatchLines: 2})
		half := min(len(text), int(pause))
		add(t, path, string(text[:half]))
		lines := r.rest()
		add(t, path, string(text[half:]))
		lines = append(lines, r.rest()...)

		var want []string
		body, _ := bytes.CutPrefix(text[:bytes.LastIndexByte(text, '\n')+1], []byte("\uFEFF"))
		for line := range bytes.Lines(body) {
			line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
			if rest := bytes.TrimLeft(line, "\x00"); len(line) > 8 && len(rest) > 0 && len(rest) < len(line) {
				want = append(want, string(line[:len(line)-len(rest)]))
				line = rest // a hole is a line of its own
			}
			if len(bytes.Trim(line, " \t\r")) > 0 || len(line) > 8 {
				want = append(want, string(line))
			}
		}
		if diff := cmp.Diff(want, raws(lines)); diff != "" {
			t.Errorf("lines of %q (-want +got):\n%s", text, diff)
		}
	})
}

// Each batch without lines comes after a look at every file.
func TestTheCursorsOfManyFilesWithoutLinesComeTogether(t *testing.T) {
	box := open(t)
	const files = 1000
	for n := range files {
		write(t, fmt.Sprintf("%s/%04d.jsonl", box.TasksDir(), n), "\n")
	}
	r := tail(t, box, mailbox.TailOptions{})
	batches, cursors := 0, map[string]bool{}
	for batch, err := r.Next(); !batch.Empty(); batch, err = r.Next() {
		must(t, err)
		batches++
		for _, c := range append(batch.More, batch.Cursor) {
			cursors[c.Path] = true
			r.cursors[c.Path] = c
		}
		r.Done(batch)
	}
	if batches != 1 || len(cursors) != files {
		t.Errorf("got %d cursors in %d batches; want %d in 1", len(cursors), batches, files)
	}
	r = r.again(box, mailbox.TailOptions{})
	r.want()
	add(t, box.TasksDir()+"/0007.jsonl", "a\n")
	r.want("a")
}
