package mailboxd_test

import (
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/decisions/task"
)

// holders are the packages that hold tasks and end holds, so they name reasons one by one. All others
// ask the table in internal/decisions/task.
var holders = []string{
	"dispatch", "dispatch/exchange", "dispatch/executor", "dispatch/intake", "dispatch/store",
	"internal/decisions/core", "internal/decisions/conversation", "internal/decisions/policy", "internal/decisions/task",
	"internal/running/agent",
}

// ofOneReason are the other files that name a reason, since what they do concerns that reason alone.
var ofOneReason = map[string]string{
	"internal/operating/backup/restore.go":    "Recovered",
	"internal/operating/doctor/ledger.go":     "Recovered",
	"internal/cli/reader/hold.go":             "Capacity", // a short pause isn't worth a word
	"internal/operating/registry/registry.go": "Approval", // only an approval needs the plan of a run
	"internal/cli/view/agents.go":             "ProviderLimit",
	"internal/access/gateway/state.go":        "AuthRequired", // a state of its own in A2A
	"internal/access/web/actions.go":          "Operator",     // what is held can't be held again
	"internal/access/web/routing.go":          "Routing",
	"internal/access/web/task.go":             "Routing",
}

func TestOnlyTheTableOfReasonsListsReasons(t *testing.T) {
	named := reasonConstants(t)
	found := map[string]string{}
	for path, file := range sources(t) {
		path = filepath.ToSlash(path)
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "internal/decisions/task/") {
			continue
		}
		for node := range ast.Preorder(file) {
			if list, ok := node.(*ast.CompositeLit); ok && isReasons(list.Type) && len(reasonsIn(list, named)) > 1 {
				t.Errorf("%s has a list of %v; ask task.Reason.Facts", path, reasonsIn(list, named))
			}
		}
		if in := reasonsIn(file, named); len(in) > 0 && !slices.Contains(holders, path[:strings.LastIndex(path, "/")]) {
			found[path] = strings.Join(in, " ")
		}
	}
	if !maps.Equal(found, ofOneReason) {
		t.Errorf("the files that name reasons are\n%v\nwant\n%v", found, ofOneReason)
	}
}

func TestThePageOfDialectsListsTheReasonsThatRequestersAreTold(t *testing.T) {
	page, err := os.ReadFile("docs/dialects.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "a list of reasons (")
	list, _, _ = strings.Cut(list, ")")
	want := []string{"`inbox`", "`oversight`"} // of tasks that are not held
	for _, r := range task.Reasons() {
		want = append(want, "`"+string(r)+"`")
	}
	got := strings.Split(list, ", ")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/dialects.md lists the reasons\n%v\nwant\n%v", got, want)
	}
}

// isReasons reports whether a type is a list or a map of reasons.
func isReasons(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.ArrayType:
		return isReason(of.Elt)
	case *ast.MapType:
		return isReason(of.Key)
	}
	return false
}

func isReason(of ast.Expr) bool {
	name, ok := of.(*ast.SelectorExpr)
	return ok && name.Sel.Name == "Reason"
}

// reasonConstants returns the names of the constants of the reasons.
func reasonConstants(t *testing.T) (names []string) {
	t.Helper()
	for node := range ast.Preorder(sources(t)[filepath.FromSlash("internal/decisions/task/reason.go")]) {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || spec.Type == nil {
			continue
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "Reason" {
			names = append(names, spec.Names[0].Name)
		}
	}
	if len(names) != len(task.Reasons()) {
		t.Fatalf("reason.go has the constants %v; want one for each of %v", names, task.Reasons())
	}
	return names
}

// reasonsIn returns the constants of reasons that code names, each once.
func reasonsIn(code ast.Node, named []string) (in []string) {
	called := map[ast.Expr]bool{} // methods of a variable that is named task
	for node := range ast.Preorder(code) {
		if call, ok := node.(*ast.CallExpr); ok {
			called[call.Fun] = true
		}
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || called[selector] || !slices.Contains(named, selector.Sel.Name) || slices.Contains(in, selector.Sel.Name) {
			continue
		}
		if of, ok := selector.X.(*ast.Ident); ok && of.Name == "task" {
			in = append(in, selector.Sel.Name)
		}
	}
	slices.Sort(in)
	return in
}
