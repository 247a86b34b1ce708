package mailboxd_test

import (
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a package of the engine, a type and a struct may grow to.
const (
	mostLines   = 3750
	mostMethods = 45
	mostFields  = 14
)

// engine are the packages that mostLines and mostFields hold for.
var engine = []string{
	"dispatch", "dispatch/store", "dispatch/outbox", "dispatch/exchange", "dispatch/executor", "dispatch/intake",
	"internal/decisions/core", "internal/decisions/conversation", "internal/decisions/task",
	"internal/running/schedule", "internal/stores/retention",
}

// ceilings are the lines that the other packages may grow to: 500 more than they had when their
// row was written. A package that needs more is split.
var ceilings = map[string]int{
	"bench":                                   3900, // with the measures of the gateway and of runners: a client, a hub and stubs
	"cmd/mailboxd":                            6150,
	"envelope":                                5053,
	"envelope/dialect":                        6406,
	"cmd/mailboxd-hub":                        670,
	"internal/operating/hub":                  1270,
	"examples/agents/words":                   621,
	"examples/workers/shout":                  514,
	"examples/workers/worker":                 549,
	"internal/running/agent":                  10400, // with runs on runners
	"internal/access/api":                     4250,  // with the requests about runners
	"internal/operating/backup":               1888,
	"internal/sandboxing/breakout":            1396,
	"internal/sandboxing/cgroup":              741,
	"internal/access/client":                  1985,
	"internal/operating/config":               4950, // with runners
	"internal/sandboxing/confine":             842,
	"internal/operating/daemon":               918,
	"internal/cli/artifacts":                  700,
	"internal/cli/demo":                       780,
	"internal/testtools/a2acli":               540,
	"internal/testtools/differential":         512,
	"internal/stores/dirtree":                 1408,
	"internal/operating/doctor":               1748,
	"internal/cli/exit":                       582,
	"internal/testtools/fault":                683,
	"internal/sandboxing/gate":                791,
	"internal/sandboxing/gitfiles":            1379,
	"internal/running/host":                   877,
	"internal/cli/evidence":                   620,
	"internal/cli/lint":                       896,
	"internal/mailboxd-needs-linux":           505,
	"internal/access/mcpserver":               2355,
	"internal/operating/metrics":              604,
	"internal/operating/notice":               993,
	"internal/decisions/fleet":                3400, // messages, two state machines, and their simulation
	"internal/decisions/policy":               1228,
	"internal/access/proof":                   1240,
	"internal/running/quota":                  802,
	"internal/cli/reader":                     2641,
	"internal/operating/sealing":              1100,
	"internal/testtools/realagents":           504,
	"internal/testtools/realagents/fakemodel": 1486,
	"internal/operating/registry":             1135,
	"internal/access/replay":                  1015,
	"internal/cli/compose":                    810,
	"internal/decisions/route":                1040,
	"internal/decisions/sign":                 800,
	"internal/running/runner":                 4733,
	"internal/sandboxing/sandbox":             1448,
	"internal/running/schema":                 1577,
	"internal/operating/runnerssh":            960,
	"internal/operating/runnerdaemon":         2450, // with what stays at a runner
	"internal/testtools/sshd":                 650,
	"internal/testtools/runnerstorm":          600,
	"internal/testtools/scriptagent":          600,
	"internal/operating/service":              942,
	"internal/operating/setup":                2051,
	"internal/testtools/slowtest":             599,
	"internal/testtools/strict":               1823,
	"internal/testtools/programs":             570,
	"internal/testtools/toolcaller":           600,
	"internal/cli/term":                       1125,
	"internal/testtools/torture":              508,
	"internal/testtools/runners":              510,
	"internal/running/acp":                    1800,
	"internal/running/carrier":                1900,
	"internal/running/owner":                  2560, // with a runner and a hub of the tests, and what goes with a job
	"internal/running/external":               2000,
	"internal/running/remote":                 1200,
	"internal/running/services":               900,
	"internal/running/dial":                   650,
	"internal/testtools/a2astub":              650,
	"internal/running/toolserver":             568,
	"internal/running/broker":                 1250,
	"internal/running/brokered":               970,
	"internal/running/filehash":               600,
	"internal/running/toolcall":               808,
	"internal/running/transcript":             1592,
	"internal/cli/view":                       3732,
	"internal/access/gateway":                 2100,
	"internal/access/web":                     4760,
	"internal/access/web/access":              1086,
	"internal/access/web/agenttext":           950,
	"internal/access/web/code":                850,
	"internal/access/web/live":                700,
	"internal/access/web/order":               700,
	"internal/access/web/timeline":            650,
	"internal/running/worker":                 1451,
	"internal/stores/artifact":                1100,
	"internal/stores/seal":                    1250,
	"internal/stores/worktree":                2700,
	"release/internal/rename":                 150,
	"internal/stores/bundle":                  2450,
	"mailbox":                                 4638,
	"watcher":                                 785,

	// The ledger is larger than a package of the engine: each question about a task is a method
	// beside its SQL. It has a limit of its own, so that it doesn't grow.
	"internal/stores/ledger": 5380,
}

// wide are the types that may have more fields: options, what a run gets, tables of functions, and rows of
// the ledger.
var wide = []string{"store.Options", "store.Agents", "store.Protocol", "task.Task", "task.Run", "task.Job", "task.Message", "task.Consent"}

// A largeType may have more methods, and why says how it is split.
type largeType struct {
	methods int
	why     string
}

// large are the types that had more than mostMethods when the limit came. A row
// goes when its type is split.
var large = map[string]largeType{
	"agent.Agent":         {122, "next to split: the run of a command, of a worker, and of an inbox agent are three types"},
	"api.Server":          {70, "next to split: handlers that read, handlers that change, and streams are three types"},
	"client.Client":       {61, "next to split: the calls of approvers, of inbox agents, and about runners"},
	"api.Records":         {57, "goes with api.Server: one method for each answer"},
	"reader.Reader":       {47, "one method for each command that reads"},
	"runnerdaemon.daemon": {56, "next to split: what goes over the link, and the files of runs"},
	"web.server":          {61, "one method for each page and form"},
	"ledger.Tx":           {97, "one method for each statement, so that all SQL is in one package"},
	"ledger.Reader":       {72, "one method for each query, so that all SQL is in one package"},
}

func TestPackagesAndTypesStaySmall(t *testing.T) {
	lines, methods, fields := map[string]int{}, map[string]int{}, map[string]int{}
	for path, file := range sources(t) {
		dir := filepath.ToSlash(filepath.Dir(path))
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		lines[dir] += fileSet.File(file.Pos()).LineCount()
		all := map[string]int{}
		for _, d := range file.Decls {
			count(file.Name.Name, d, methods, all)
		}
		if slices.Contains(engine, dir) || dir == "internal/stores/ledger" {
			maps.Copy(fields, all)
		}
	}
	for dir, n := range lines {
		most := ceilings[dir]
		if slices.Contains(engine, dir) {
			most = mostLines
		}
		if n > most {
			t.Errorf("package %s has %d lines; want at most %d, its row in size_test.go", dir, n, most)
		}
	}
	for _, dir := range slices.Concat(engine, slices.Collect(maps.Keys(ceilings))) {
		if lines[dir] == 0 {
			t.Errorf("size_test.go has a row for package %s, which has no code", dir)
		}
	}
	checkTypes(t, methods, fields)
}

// checkTypes compares the types with their limits.
func checkTypes(t *testing.T, methods, fields map[string]int) {
	t.Helper()
	for name, n := range methods {
		if most := max(mostMethods, large[name].methods); n > most {
			t.Errorf("%s has %d methods; want at most %d", name, n, most)
		}
	}
	for name := range large {
		if methods[name] <= mostMethods {
			t.Errorf("%s has %d methods; take its row out of size_test.go", name, methods[name])
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
