package mailboxd_test

import (
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a package and a type of the engine may grow to.
const (
	mostLines   = 3750
	mostMethods = 45
	mostFields  = 14
)

// engine are the packages that these limits hold for.
var engine = []string{
	"dispatch", "dispatch/store", "dispatch/outbox", "dispatch/exchange", "dispatch/executor", "dispatch/intake",
	"internal/core", "internal/conversation", "internal/task", "internal/schedule", "internal/retention",
}

// wide are the types that may have more fields: options, tables of functions, and rows of
// the ledger.
var wide = []string{"store.Options", "store.Agents", "store.Protocol", "task.Task", "task.Run", "task.Message", "task.Consent"}

func TestPackagesAndTypesOfTheEngineStaySmall(t *testing.T) {
	lines, methods, fields := map[string]int{}, map[string]int{}, map[string]int{}
	for path, file := range sources(t) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if !slices.Contains(engine, dir) || strings.HasSuffix(path, "_test.go") {
			continue
		}
		lines[dir] += fileSet.File(file.Pos()).LineCount()
		for _, d := range file.Decls {
			count(file.Name.Name, d, methods, fields)
		}
	}
	for _, dir := range engine {
		if lines[dir] == 0 || lines[dir] > mostLines {
			t.Errorf("package %s has %d lines; want 1 to %d", dir, lines[dir], mostLines)
		}
	}
	for name, n := range methods {
		if n > mostMethods {
			t.Errorf("%s has %d methods; want at most %d", name, n, mostMethods)
		}
	}
	for name, n := range fields {
		if n > mostFields && !slices.Contains(wide, name) {
			t.Errorf("%s has %d fields; want at most %d", name, n, mostFields)
		}
	}
}

// count counts the methods and fields of the types in a declaration.
func count(pkg string, d ast.Decl, methods, fields map[string]int) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			methods[pkg+"."+receiverOf(d)]++
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			spec, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if of, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range of.Fields.List {
					fields[pkg+"."+spec.Name.Name] += max(1, len(f.Names))
				}
			}
		}
	}
}

// receiverOf is the name of the type of a method.
func receiverOf(d *ast.FuncDecl) string {
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return "?"
}
