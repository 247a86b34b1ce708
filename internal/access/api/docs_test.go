package api

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mailboxd/dispatch"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
)

var update = flag.Bool("update", false, "write docs/api.md anew")

const (
	docsFile = "../../../docs/api.md"
	madeHere = "<!-- What follows is made from the code: go test ./internal/access/api -run Docs -update -->\n"
)

func TestDocsSayWhatTheRoutesAndTypesAre(t *testing.T) {
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	byHand, _, found := strings.Cut(string(text), madeHere)
	if !found {
		t.Fatalf("%s has no line %s", docsFile, madeHere)
	}
	want := byHand + madeHere + generated(t)
	if *update {
		if err := os.WriteFile(docsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s does not say what the code does; run: go test ./internal/access/api -run Docs -update", docsFile)
	}
}

func generated(t *testing.T) string {
	var b strings.Builder
	d := &Server{engine: &dispatch.Dispatcher{}}
	fmt.Fprint(&b, "\n## Requests\n\n| request | query | body | answer | |\n|---|---|---|---|---|\n")
	streams := []route{
		{method: "GET", path: "/events", query: "task, after", about: "Events as they come; see above."},
		{method: "GET", path: "/clutch/events", query: "run_id, thread_id, task_id, from, type, after", about: "The same events as messages of Clutch; see above."},
	}
	for _, r := range append(d.routes(), streams...) {
		fmt.Fprintf(&b, "| `%s %s%s` | %s | %s | %s | %s |\n", r.method, client.Base, r.path, r.query, typeName(r.body), typeName(r.answer), r.about)
	}
	fmt.Fprint(&b, "\n## Errors\n\nEvery answer that is not 200 is a Failure.\n\n| kind | status | |\n|---|---|---|\n")
	source := parse(t, "client.go")
	for _, c := range source.constants {
		status, means, _ := strings.Cut(c.comment, ": ")
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.value, status, means)
	}
	fmt.Fprint(&b, "\n## Event kinds\n\nOther kinds may be added. The event that sets a result has its SHA-256 as `result_sha256`, and the end of a run in a\n",
		"worktree that of its patch as `patch_sha256`.\n\n| kind | what happened |\n|---|---|\n")
	for _, k := range task.EventKinds() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", k, k.Sentence())
	}
	fmt.Fprint(&b, "\n## Hold reasons\n\nThe sentences are about the task.\n\n| reason | why the task is held | what a person can do |\n|---|---|---|\n")
	for _, f := range task.FactsOf(task.Reasons()) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Reason, f.Sentence, f.Remedy)
	}
	fmt.Fprint(&b, "\n## Types\n\nTimes are RFC 3339 in UTC.\n")
	for _, s := range slices.Concat(parse(t, "types.go").structs, parse(t, "approval.go").structs, parse(t, "dialogue.go").structs, source.structs) {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| field | type | |\n|---|---|---|\n", s.name, s.doc)
		for _, f := range s.fields {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.name, f.kind, f.comment)
		}
	}
	return b.String()
}

func typeName(v any) string {
	if v == nil {
		return ""
	}
	return reflect.TypeOf(v).Name()
}

type (
	sourceFile struct {
		structs   []structDoc
		constants []constant
	}
	structDoc struct {
		name, doc string
		fields    []fieldDoc
	}
	fieldDoc struct{ name, kind, comment string }
	constant struct{ value, comment string }
)

// parse reads the types that are sent, and the kinds of errors, with what is
// said of them.
func parse(t *testing.T, name string) (source sourceFile) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../client/"+name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if s, ok := spec.Type.(*ast.StructType); ok {
					if fields := sent(s); len(fields) > 0 {
						source.structs = append(source.structs, structDoc{spec.Name.Name, sentence(group.Doc), fields})
					}
				}
			case *ast.ValueSpec:
				if value, ok := first(spec.Values).(*ast.BasicLit); ok && spec.Comment != nil {
					source.constants = append(source.constants, constant{strings.Trim(value.Value, `"`), sentence(spec.Comment)})
				}
			}
		}
	}
	return source
}

func first(values []ast.Expr) ast.Expr {
	if len(values) == 0 {
		return nil
	}
	return values[0]
}

// sent are the fields of a struct that have a name in JSON.
func sent(s *ast.StructType) (fields []fieldDoc) {
	for _, f := range s.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
		name, options, _ := strings.Cut(tag, ",")
		comment := sentence(f.Comment)
		if options != "" {
			comment = strings.TrimPrefix(comment+"; may be absent", "; ")
		}
		fields = append(fields, fieldDoc{name, kindOfField(f.Type), comment})
	}
	return fields
}

// kindOfField is a Go type in the words of JSON.
func kindOfField(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.ArrayType:
		return "array of " + kindOfField(e.Elt)
	case *ast.MapType:
		return "object of " + kindOfField(e.Value)
	case *ast.SelectorExpr:
		return map[string]string{
			"Time": "time", "Value": "any JSON", "Budget": "object of number",
			"ID": "string", "Status": "string", "Kind": "string", "Approval": "string", "State": "string", "Reason": "string", "Cause": "string",
		}[e.Sel.Name]
	case *ast.StarExpr:
		return kindOfField(e.X)
	case *ast.Ident:
		words := map[string]string{"int": "number", "int64": "number", "uint64": "number", "bool": "true or false", "string": "string"}
		if word, ok := words[e.Name]; ok {
			return word
		}
		return e.Name
	}
	return ""
}

func sentence(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	return strings.Join(strings.Fields(doc.Text()), " ")
}
