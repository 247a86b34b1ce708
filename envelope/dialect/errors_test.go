package dialect_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

// everyKind is each kind that package envelope has.
func everyKind(t testing.TB) (kinds []envelope.Kind) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../kind.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for node := range ast.Preorder(file) {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			continue
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == "Kind" {
			word, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, envelope.Kind(word))
		}
	}
	if len(kinds) < 30 {
		t.Fatalf("found only %v", kinds)
	}
	return kinds
}

func TestEveryKindHasACode(t *testing.T) {
	for _, kind := range everyKind(t) {
		clowl, cap, _ := dialect.Code(kind)
		if kind != envelope.InternalError && clowl == "E009" && cap == 500 && len(dialect.KindsOf(string(kind))) != 1 {
			t.Errorf("%s is in no row of the table", kind)
		}
	}
}

// The codes, and whether each is worth a retry, as CLowl v0.2 lists them.
func TestCodesAreThoseOfTheTable(t *testing.T) {
	for _, c := range []struct {
		kind  envelope.Kind
		clowl string
		cap   int
		retry bool
	}{
		{envelope.InvalidJSON, "E001", 400, true}, {envelope.InvalidEnvelope, "E001", 400, true},
		{envelope.Unauthorized, "E002", 401, false}, {envelope.DelegationDenied, "E002", 403, false}, {envelope.ApprovalDenied, "E002", 403, false},
		{envelope.ContextUnavailable, "E003", 404, true}, {envelope.ContextIntegrity, "E003", 404, true},
		{envelope.Capacity, "E004", 429, true}, {envelope.UnsupportedTask, "E005", 501, false},
		{envelope.Timeout, "E006", 504, true}, {envelope.DeadlineExceeded, "E006", 504, true},
		{envelope.DependencyFailed, "E007", 424, true},
		{envelope.ContractViolation, "E008", 422, true}, {envelope.ValidationFailed, "E008", 422, true},
		{envelope.InternalError, "E009", 500, true}, {envelope.AgentCrashed, "E009", 500, true}, {"of another day", "E009", 500, true},
		{envelope.UnknownAgent, "E010", 421, false}, {envelope.DuplicateConflict, "E011", 409, true},
		{envelope.BudgetExceeded, "E012", 402, false}, {envelope.Cancelled, "E013", 499, false},
		{envelope.UnsupportedVersion, "E014", 505, false}, {envelope.DelegationCycle, "E015", 508, false},
		{envelope.PolicyViolation, "E016", 403, false}, {envelope.OversightRejected, "E016", 403, false},
	} {
		clowl, cap, retry := dialect.Code(c.kind)
		if clowl != c.clowl || cap != c.cap || retry != c.retry {
			t.Errorf("%s is %s, %d, %v; want %s, %d, %v", c.kind, clowl, cap, retry, c.clowl, c.cap, c.retry)
		}
	}
}
