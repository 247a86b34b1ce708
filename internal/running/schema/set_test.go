package schema_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/running/schema"
)

// directory writes files, by their paths, and returns where.
func directory(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t testing.TB, files map[string]string) *schema.Set {
	t.Helper()
	s, err := schema.Load(directory(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// AINL-42.
func TestTheSchemaOfAgentOutputIsAlwaysThere(t *testing.T) {
	s, err := schema.Load("")
	if err != nil || !s.Has(schema.AgentOutput) || s.Has("schema://acme/report/v2") {
		t.Fatalf("Load(no directory) = %v, %v; want the built-in schema and no other", s, err)
	}
	for document, want := range map[string]string{
		`{"status": "ok", "summary": "s", "actions": []}`:                                                        "",
		`{"status": "ok", "summary": "s", "actions": [{"kind":"k","description":"d","status":"s"}], "x": 1}`:     "",
		`{"status": "ok", "summary": "s"}`:                                                                       "actions",
		`{"status": "ok", "summary": "", "actions": []}`:                                                         "summary: ",
		`{"status": 3, "summary": "s", "actions": []}`:                                                           "status: got number, want string",
		`{"status": "ok", "summary": "s", "actions": {}}`:                                                        "actions: got object, want array",
		`{"status": "ok", "summary": "s", "actions": [{"kind":"k","status":"s"}]}`:                               "actions.0: missing property 'description'",
		`{"status": "ok", "summary": "s", "actions": [{"kind":"k","status":"s","description":"d"}, {"kind":1}]}`: "actions.1",
		`[]`: "got array, want object",
	} {
		err := s.Check(schema.AgentOutput, []byte(document))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check(%s) = %v; want %q", document, err, want)
		}
	}
}

func TestARefNamesAFileOfTheDirectory(t *testing.T) {
	s := load(t, map[string]string{
		"acme/report/v2.json":     `{"properties": {"n": {"$ref": "number.json"}, "m": {"$ref": "schema://acme/report/number"}}}`,
		"acme/report/number.json": `{"type": "integer"}`,
		"top.json":                `{"$schema": "http://json-schema.org/draft-07/schema#", "required": ["x"]}`,
		"README.md":               "not a schema",
		".hidden.json":            "nor is this",
		".git/x.json":             "nor this",
	})
	for ref, want := range map[string]bool{
		"schema://acme/report/v2": true, "schema://top": true, "schema://acme/report/v2.json": false,
		"schema://acme/report": false, "acme/report/v2": false, "schema://.hidden": false, "schema://../top": false, "": false,
	} {
		if got := s.Has(ref); got != want {
			t.Errorf("Has(%q) = %v; want %v", ref, got, want)
		}
	}
	for document, want := range map[string]string{`{"n": 1, "m": 2}`: "", `{"n": 1.5}`: "n: ", `{"m": "1"}`: "m: "} {
		err := s.Check("schema://acme/report/v2", []byte(document))
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Check(%s) = %v; want %q", document, err, want)
		}
	}
	if err := s.Check("schema://acme/other", []byte("{}")); err == nil {
		t.Error("Check(no such schema) = nil; want an error")
	}
}

func TestALinkInsideTheDirectoryIsFollowed(t *testing.T) {
	dir := directory(t, map[string]string{".data/x.json": `{"required": ["x"]}`})
	if err := os.Symlink(".data/x.json", filepath.Join(dir, "x.json")); err != nil {
		t.Fatal(err)
	}
	if s, err := schema.Load(dir); err != nil || s.Check("schema://x", []byte("{}")) == nil {
		t.Errorf("Load = %v, %v; want the schema that the link names", s, err)
	}
}

func TestASchemaThatCannotBeUsedIsNamed(t *testing.T) {
	outside := directory(t, map[string]string{"secret.json": "{}"})
	for want, files := range map[string]map[string]string{
		"a/b.json: ":                         {"a/b.json": `{"type": "strong"}`, "c.json": "{}"},
		"half.json: cannot be judged: ":      {"half.json": `{"type": `},
		"twice.json: cannot be judged: ":     {"twice.json": `{"type": "object", "type": "array"}`},
		"net.json: ":                         {"net.json": `{"$ref": "https://example.com/x.json"}`},
		"passwd.json: ":                      {"passwd.json": `{"$ref": "file:///etc/passwd"}`},
		"up.json: ":                          {"up.json": `{"$ref": "../../../etc/passwd"}`},
		"meta.json: ":                        {"meta.json": `{"$schema": "https://example.com/schema"}`},
		"pattern.json: ":                     {"pattern.json": `{"pattern": "("}`},
		"minimum.json: cannot be judged: ":   {"minimum.json": `{"minimum": 1e999999999}`},
		"a b.json: a schema's name has only": {"a b.json": `{}`},
		"ainl/agent-output/v1.json: schema://ainl/agent-output/v1 is built in": {"ainl/agent-output/v1.json": `{}`},
		"large.json: is larger than": {"large.json": strings.Repeat(" ", 1<<20) + "{}"},
	} {
		_, err := schema.Load(directory(t, files))
		if want = "load schemas: " + want; err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Load = %v; want an error that begins %q, on one line", err, want)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(outside, "secret.json"), filepath.Join(dir, "out.json")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, filepath.Join(dir, "missing"), filepath.Join(outside, "secret.json")} {
		if _, err := schema.Load(dir); err == nil {
			t.Errorf("Load(%s) = nil; want an error", dir)
		}
	}
}

func TestADirectoryThatIsNoneOfSchemasIsRefused(t *testing.T) {
	files := map[string]string{}
	for n := range 1001 {
		files[fmt.Sprintf("%d.txt", n)] = ""
	}
	if _, err := schema.Load(directory(t, files)); err == nil || !strings.Contains(err.Error(), "more than 1000 files") {
		t.Errorf("Load = %v; want it refused for its size", err)
	}
}

// However an answer is made, judging it comes to an end, and what cannot be
// judged is wrong.
func TestNoAnswerKeepsACheckBusy(t *testing.T) {
	tree := `{"properties": {"a": {"$ref": "#"}}}`
	s := load(t, map[string]string{
		"numbers.json":   `{"items": {"type": "integer", "minimum": 1}, "uniqueItems": true}`,
		"branches.json":  `{"$defs": {"t": ` + tree + `}, "oneOf": [` + tree + `, ` + tree + `, {"required": ["b"]}]}`,
		"branches7.json": `{"$schema": "http://json-schema.org/draft-07/schema#", "anyOf": [{"required": ["b"], "properties": {"a": {"$ref": "#"}}}, {"required": ["c"], "properties": {"a": {"$ref": "#"}}}]}`,
		"types.json":     `{"items": {"anyOf": [` + strings.Repeat(`{"type": "string"}, `, 100) + `{"type": "null"}]}}`,
		"loop.json":      `{"$ref": "#"}`,
		"any.json":       `true`,
	})
	nested := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
	list := func(item string, n int) string { return "[" + strings.Repeat(item+",", n-1) + item + "]" }
	for name, c := range map[string]struct{ ref, document, want string }{
		"an exponent":            {"schema://numbers", `[1e1000000]`, "more than 400 digits"},
		"a huge exponent":        {"schema://numbers", `[1e99999999999999999999]`, "more than 400 digits"},
		"a small one":            {"schema://numbers", `[1e-1000000]`, "more than 400 digits"},
		"digits":                 {"schema://numbers", "[" + strings.Repeat("9", 4000) + "]", "more than 400 digits"},
		"many values":            {"schema://any", list("1", 200_000), "more than 100000 values"},
		"depth":                  {"schema://any", nested(100), "nested more than 64 deep"},
		"a schema that branches": {"schema://branches", nested(60), "takes too long"},
		"an older one":           {"schema://branches7", nested(60), "takes too long"},
		"many branches":          {"schema://types", list("1", 50_000), "takes too long"},
		"a schema in a circle":   {"schema://loop", `{}`, ""},
		"two documents":          {"schema://any", `{}{}`, "goes on after its end"},
		"half a document":        {"schema://any", `{"a":`, "cannot be judged"},
		"a name twice":           {"schema://any", `{"a":1,"a":2}`, "cannot be judged"},
	} {
		err := s.Check(c.ref, []byte(c.document))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Check = %v; want %q", name, err, c.want)
		}
	}
	// and the next one is judged as if nothing had been
	for ref, document := range map[string]string{"schema://numbers": list("7", 1), "schema://any": nested(60)} {
		if err := s.Check(ref, []byte(document)); err != nil {
			t.Errorf("Check(%s) = %v; want nil", ref, err)
		}
	}
}

func TestTheFirstComplaintIsAlwaysTheSame(t *testing.T) {
	s := load(t, map[string]string{"x.json": `{"required": ["r"], "additionalProperties": {"type": "string"}}`})
	for range 20 {
		err := s.Check("schema://x", []byte(`{"c": 1, "a": 1, "b": 1, "r": 1}`))
		if err == nil || err.Error() != "a: got number, want string" {
			t.Fatalf("Check = %v; want it to name a", err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	s := load(f, map[string]string{"x.json": `{"type": "object", "required": ["n"], "properties": {
		"n": {"type": "integer", "minimum": 1, "multipleOf": 2}, "l": {"uniqueItems": true, "contains": {"const": 1.0}},
		"s": {"pattern": "^a+$", "maxLength": 3}, "t": {"$ref": "#"}}}`})
	f.Add([]byte(`{"n": 2, "l": [1, 1.0, 1e0], "s": "aa", "t": {"n": 1e400}}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		one, two := s.Check("schema://x", document), s.Check("schema://x", document)
		if fmt.Sprint(one) != fmt.Sprint(two) {
			t.Fatalf("Check(%q) = %v, and then %v", document, one, two)
		}
	})
}

func BenchmarkCheckAgentOutput(b *testing.B) {
	s, err := schema.Load("")
	if err != nil {
		b.Fatal(err)
	}
	document := []byte(`{"status": "ok", "summary": "all is well", "actions": [{"kind": "check", "description": "looked", "status": "executed"}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Check(schema.AgentOutput, document); err != nil {
			b.Fatal(err)
		}
	}
}
