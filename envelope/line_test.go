package envelope_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
)

// named is a short valid request.
func named(id string) string { return request("task_id", `"`+id+`"`) }

// pieceWords writes pieces as "taken id" or "kind id", in order.
func pieceWords(pieces []envelope.Piece) []string {
	var words []string
	for _, p := range pieces {
		word := "taken"
		if p.Findings.Refused() {
			word = string(p.Findings.Kind())
		}
		words = append(words, strings.TrimSpace(word+" "+string(p.Task.ID)))
	}
	return words
}

var (
	a, b, c = named("a"), named("b"), named("c")
	torn    = a[:len(a)/2]
)

// of2 is a request of a major version that is not supported.
func of2(line string) string { return strings.Replace(line, `"1.0"`, `"2.0"`, 1) }

// lines are texts between two newlines, and the pieces of each.
var lines = []struct {
	row, line string
	want      []string
}{
	{"row 8: a plain line", a, []string{"taken a"}},
	{"row 8: CRLF and trailing spaces", " \t" + a + " \r", []string{"taken a"}},
	{"row 8: a blank line", " \t\r", nil},
	{"row 8: nothing at all", "", nil},
	{"row 1: bad UTF-8", strings.Replace(a, "look", "l\xffk", 1), []string{"invalid_json a"}},
	{"row 2: duplicate names", strings.Replace(a, "{", `{"x":1,"x":2,`, 1), []string{"invalid_envelope a"}},
	{"row 4: NaN", strings.Replace(a, "{}", `{"x":NaN}`, 1), []string{"invalid_json a"}},
	{"row 4: Infinity", strings.Replace(a, "{}", `{"x":-Infinity}`, 1), []string{"invalid_json a"}},
	{"row 7: a byte order mark inside a file", "\ufeff" + a, []string{"invalid_json a"}},
	{"row 7: UTF-16", "\x00{\x00\"\x00a\x00\"\x00:\x001\x00}", []string{"invalid_json"}},
	{"row 9: a raw NUL in a string", strings.Replace(a, "look", "l\x00k", 1), []string{"invalid_json a"}},
	{"row 9: a hole", strings.Repeat("\x00", 4096), []string{"invalid_json"}},
	{"row 9: a hole and the next line", strings.Repeat("\x00", 4096) + b, []string{"invalid_json", "taken b"}},
	{"row 11: too deep", request("x", strings.Repeat("[", 1e5)+strings.Repeat("]", 1e5)), []string{"invalid_envelope t1"}},
	{"row 14: a list", "[]", []string{"invalid_envelope"}},
	{"row 14: a string", `"x"`, []string{"invalid_envelope"}},
	{"row 14: null", "null", []string{"invalid_envelope"}},
	{"row 14: an empty object", "{}", []string{"invalid_envelope"}},
	{"row 14: a null id", `{"task_id":null}`, []string{"invalid_envelope"}},
	{"no JSON", "hello", []string{"invalid_json"}},

	{"row 13: two writers", a + b, []string{"taken a", "taken b"}},
	{"row 13: three with spaces", a + " " + b + "\t" + c, []string{"taken a", "taken b", "taken c"}},
	{"row 13: two, one of them invalid", request("input", "7") + b, []string{"invalid_envelope t1", "taken b"}},
	{"row 13: a torn line and a whole one", torn + b, []string{"invalid_json a", "taken b"}},
	{"row 13: a torn line and two whole ones", torn + b + c, []string{"invalid_json a", "taken b", "taken c"}},
	{"row 13: torn where a value should be", `{"task_id":"a","input":` + b + c, []string{"invalid_json a", "taken b", "taken c"}},
	{"row 13: torn and a whole one that is refused", torn + of2(b), []string{"invalid_json a", "unsupported_version b"}},
	{"row 13: torn, a whole one that is refused, a whole one", torn + of2(b) + c, []string{"invalid_json a", "unsupported_version b", "taken c"}},
	{"row 13: torn behind an object of its payload", `{"task_id":"a","input":{"schema_version":"1.0","task_id":"n"}`, []string{"invalid_json a"}},
	{"row 13: torn behind a result in its payload", `{"task_id":"a","input":{"schema_version":"1.0","task_id":"n","agent_id":"x","status":"ok"}`, []string{"invalid_json a"}},
	{"row 13: torn inside a string", `{"task_id":"a","description":"half` + b, []string{"invalid_json a", "taken b"}},
	{"row 13: torn inside a character", "{\"task_id\":\"a\",\"description\":\"h\xc3" + b, []string{"invalid_json a", "taken b"}},
	{"row 13: torn twice", torn + torn + b, []string{"invalid_json a", "taken b"}},
	{"row 13: whole, torn, whole", a + `{"task_id":"c"` + b, []string{"taken a", "invalid_json c", "taken b"}},
	{"row 13: a whole line and a torn one", a + `{"task_id":"c","in`, []string{"taken a", "invalid_json c"}},
	{"row 13: torn and deep", `{"task_id":"a","x":` + strings.Repeat("[", 1000) + b, []string{"invalid_envelope a", "taken b"}},
	{"row 13: cut off, then sent again", torn + a, []string{"invalid_json", "taken a"}},
	{"row 13: the torn half has no id", `{"schema_version":"1.` + b, []string{"invalid_json", "taken b"}},
	{"row 13: nothing is taken from inside", `{"x":NaN,"payload":` + b + `}`, []string{"invalid_json"}},
	{"row 13: nothing is taken from inside a string", `{"x":NaN,"payload":"` + strings.ReplaceAll(b, `"`, `\"`) + `"}`, []string{"invalid_json"}},
	{"row 13: the end is no envelope", `{"x":NaN` + `{"task_id":"b"}`, []string{"invalid_json"}},
	{"row 13: the end is no envelope but its end is", torn + `{"x":1}` + b, []string{"invalid_json a", "taken b"}},
	{"row 13: more than any sender would", strings.Repeat(a, 150), slices.Repeat([]string{"taken a"}, 150)},
	{"row 13: far more", strings.Repeat("{}", 1e5), append(slices.Repeat([]string{"invalid_envelope"}, 100), "invalid_json")},
}

func TestALineIsTakenApart(t *testing.T) {
	for _, l := range lines {
		pieces := envelope.ReadLine([]byte(l.line), envelope.Strict)
		if diff := cmp.Diff(l.want, pieceWords(pieces)); diff != "" {
			t.Errorf("%s: pieces differ (-want +got):\n%s", l.row, diff)
		}
		for _, p := range pieces {
			if shared := len(pieces) > 1; shared && !p.Findings.Refused() && len(p.Findings.Warnings()) == 0 {
				t.Errorf("%s: %q came without a warning", l.row, p.Task.ID)
			}
			if len(p.Task.Hash) != 64 || !bytes.Contains([]byte(l.line), p.Task.Raw) {
				t.Errorf("%s: %q has hash %q and raw %.40q", l.row, p.Task.ID, p.Task.Hash, p.Task.Raw)
			}
		}
	}
}

func TestThePiecesOfALineAreTheWholeLine(t *testing.T) {
	line := named("a") + `{"task_id":"c"` + named("b")
	var whole []byte
	for _, p := range envelope.ReadLine([]byte(line), envelope.Strict) {
		whole = append(whole, p.Task.Raw...)
	}
	if string(whole) != line {
		t.Errorf("pieces hold %s; want %s", whole, line)
	}
}

func TestTheErrorOfInvalidJSONSaysWhatIsWrong(t *testing.T) {
	for line, want := range map[string]string{
		request("input", `{"payload":{"a":[1,NaN]}}`): `input.payload.a[1]: is NaN, which JSON does not have (byte 192)`,
		request("metadata", `{"ainl.x":Infinity}`):    `metadata["ainl.x"]: is Infinity, which JSON does not have (byte 209)`,
		"{\"a\": \"\x1b[2J\"}":                        `a: has "\x1b" where a character or its escape should be (byte 7)`,
		"\xff\xfe{\x00":                               "is not UTF-8 text (byte 0): it looks like UTF-16, write UTF-8",
		"{\x00\"\x00":                                 `has "\x00" where a name in quotes should be (byte 1): it looks like UTF-16, write UTF-8`,
		`{"` + strings.Repeat("long ", 20) + `":NaN}`: `["` + strings.Repeat("long ", 12) + `"...]: is NaN, which JSON does not have (byte 104)`,
		"\ufeff{}":                   `has a byte order mark where a value should be (byte 0): a byte order mark may stand at the start of a file only`,
		"\x00\x00":                   `has "\x00" where a value should be (byte 0): it looks like the hole that a crash leaves in a file`,
		`{"a":1,}`:                   `a: has "}" where a name in quotes should be (byte 7)`,
		`{"a" 1}`:                    `a: has "1" where a colon should be (byte 5)`,
		`{"a":[1 2]}`:                `a[0]: has "2" where a comma or the end of the array should be (byte 8)`,
		`{"a":01}`:                   `a: has a number that starts with 0 (byte 7)`,
		`{"a":1.}`:                   `a: has "}" where a digit should be (byte 7)`,
		`{"a":1e+}`:                  `a: has "}" where a digit should be (byte 8)`,
		`{"a":"\x"}`:                 `a: has "x" where an escape should be (byte 7)`,
		`{"a":"\u12g4"}`:             `a: has "g" where a hexadecimal digit should be (byte 10)`,
		`{"a":tru}`:                  `a: has "t" where a value should be (byte 5)`,
		`{"a":1`:                     `a: ends where a comma or the end of the object should be (byte 6)`,
		`{"a":"`:                     `a: ends inside a string (byte 6)`,
		strings.Repeat(`{"a":`, 129): strings.TrimPrefix(strings.Repeat(".a", 128), ".") + `: is nested too deep (byte 640)`,
	} {
		_, findings := decode(t, line)
		got := findings.String()
		if got != want {
			t.Errorf("%.60q:\n got %s\nwant %s", line, got, want)
		}
	}
}

// hostile are lines of n bytes and more that would take for ever if every
// brace were tried to its end.
func hostile(n int) map[string]string {
	fill := func(unit string) string { return strings.Repeat(unit, n/len(unit)) }
	return map[string]string{
		"braces":               fill("{"),
		"brackets":             fill("["),
		"braces in lists":      fill("[{"),
		"deep objects":         fill(`{"a":`),
		"deep lists":           `{"a":` + fill("[") + "{}",
		"empty objects":        fill("{}") + "x",
		"x and empty objects":  "x" + fill("{}"),
		"objects side by side": fill(`{"a":{}`),
		"strings of braces":    fill(`"{`),
		"names of braces":      fill(`{"{"`),
		"both ways to read it": fill(`{"{":":","b":`),
		"quotes after braces":  fill(`{ "`),
		"escaped quotes":       fill(`{"\"`),
		"invalid envelopes":    "x" + fill(`{"task_id":"a"}`),
		"an open end":          "x" + fill(`{"a":[{},`),
		"spaces":               `{"a":[` + fill("{},") + fill(" ") + `{`,
		"ids":                  `{` + fill(`"task_id":"a",`),
		"names":                `{` + fill(`"a":1,`) + `"b":2}`,
	}
}

// A line that took quadratic work would keep this test for minutes.
func TestAHostileLineTakesLinearWork(t *testing.T) {
	for name, line := range hostile(1 << 18) {
		for _, p := range envelope.ReadLine([]byte(line), envelope.Strict) {
			if !p.Findings.Refused() {
				t.Errorf("%s: %q was taken", name, p.Task.ID)
			}
		}
		envelope.Salvage([]byte(line))
	}
}

func BenchmarkReadLine(b *testing.B) {
	lines := bytes.Split(fixture(b, "upstream-requests.jsonl"), []byte("\n"))
	whole := lines[2]
	for name, line := range map[string][]byte{
		"Whole": whole,
		"Torn":  append(bytes.Clone(lines[0][:300]), whole...),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				envelope.ReadLine(line, envelope.Strict)
			}
		})
	}
}

func BenchmarkReadLineIsLinearWhateverTheLine(b *testing.B) {
	for _, n := range []int{1 << 16, 1 << 20} {
		lines := hostile(n)
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			line := lines[name]
			b.Run(fmt.Sprintf("%s/%dkB", strings.ReplaceAll(name, " ", "_"), n>>10), func(b *testing.B) {
				b.SetBytes(int64(len(line)))
				for b.Loop() {
					envelope.ReadLine([]byte(line), envelope.Strict)
				}
			})
		}
	}
}
