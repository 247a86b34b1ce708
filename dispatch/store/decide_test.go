package store

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"testing"
)

// The compiler doesn't ask for a case, and without one a change is not durable.
func TestEachChangeOfTheCoreIsWritten(t *testing.T) {
	changes, written := map[string]bool{}, map[string]bool{}
	for node := range ast.Preorder(parsed(t, "../../internal/decisions/core/apply.go")) {
		if f, ok := node.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "apply" {
			changes[f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name] = true
		}
	}
	for node := range ast.Preorder(parsed(t, "decide.go")) {
		f, ok := node.(*ast.FuncDecl)
		if !ok || f.Name.Name != "writeChange" {
			continue
		}
		for node := range ast.Preorder(f) {
			clause, ok := node.(*ast.CaseClause)
			if !ok {
				continue
			}
			for _, of := range clause.List {
				if pointer, ok := of.(*ast.StarExpr); ok {
					written[pointer.X.(*ast.SelectorExpr).Sel.Name] = true
				}
			}
		}
	}
	if len(changes) == 0 || !maps.Equal(changes, written) {
		t.Errorf("the changes are %v, and writeChange has cases for %v", slices.Sorted(maps.Keys(changes)), slices.Sorted(maps.Keys(written)))
	}
}

func parsed(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
