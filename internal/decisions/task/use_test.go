package task_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mailboxd/internal/decisions/task"
)

// program parses the Go files of the module that are no tests, outside this package.
func program(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "testdata" || name == "task" || strings.HasPrefix(name, ".") && len(name) > 2) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("found %d files of the program; want all of them", len(files))
	}
	return files
}

// TestEveryKindIsUsedByTheProgram finds kinds that nothing logs or reads any more.
func TestEveryKindIsUsedByTheProgram(t *testing.T) {
	used := map[string]bool{}
	for _, file := range program(t) {
		for node := range ast.Preorder(file) {
			if s, ok := node.(*ast.SelectorExpr); ok {
				if of, ok := s.X.(*ast.Ident); ok && of.Name == "task" {
					used[s.Sel.Name] = true
				}
			}
		}
	}
	for _, c := range constants(t, "Kind") {
		if !used[c.name] {
			t.Errorf("nothing outside this package uses task.%s", c.name)
		}
	}
}

// protocols are the directories of the packages that know the words of the protocols.
var protocols = []string{
	"../../../envelope", "../../../envelope/dialect",
	"../../../internal/access/replay", "../../../internal/testtools/strict",
}

// TestKindsAreSpelledInOnePlace finds event kinds that stand as text in the program.
// The acts of messages and the types of Clutch have names like them, and their own constants in
// the packages of the protocols.
func TestKindsAreSpelledInOnePlace(t *testing.T) {
	for path, file := range program(t) {
		if slices.Contains(protocols, filepath.Dir(path)) {
			continue
		}
		for node := range ast.Preorder(file) {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				continue
			}
			if text, _ := strconv.Unquote(literal.Value); slices.Contains(task.EventKinds(), task.Kind(text)) {
				t.Errorf("%s spells %s; want the constant of internal/decisions/task", path, literal.Value)
			}
		}
	}
}
