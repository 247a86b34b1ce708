// Package mailboxd_test holds the rules of the project that a compiler does not check:
// who may import whom, and that every goroutine has somebody waiting for it.
package mailboxd_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rows is the import table: a package imports only from rows below its own. An entry is a package
// with those in its folder, unless they have an entry of their own, and these import each other.
var rows = [][]string{
	{"cmd/mailboxd", "cmd/mailboxd-hub", "internal/testtools", "bench"}, // wiring, and what tests and measures the whole
	{"internal/operating"},         // configuration, daemon, and checks of the installation
	{"internal/access/gateway"},    // A2A clients, which read as commands do
	{"internal/access/web"},        // the page, which reads as commands do
	{"internal/cli"},               // commands
	{"internal/stores/bundle"},     // the evidence of a run, from the ledger and for verifiers
	{"watcher", "internal/access"}, // ways in
	{"dispatch"},                   // engine: commands of people, and the next step after each change
	{"dispatch/intake"},            // engine: lines of task files
	{"dispatch/executor"},          // engine: runs
	{"dispatch/exchange"},          // engine: requests and messages
	{"dispatch/outbox"},            // engine: results and notifications
	{"dispatch/store"},             // engine: tasks
	{"internal/cli/view"},          // words for people
	{"internal/running", "internal/stores/retention"},
	{"mailbox", "internal/stores", "internal/access/client"},
	{"internal/sandboxing"},
	{"internal/decisions"}, // pure
	{"envelope/dialect"},   // the protocols
	{"envelope"},           // types of the protocols
	{ // support
		"internal/cli/term", "internal/cli/exit", "internal/stores/dirtree", "internal/operating/metrics", "internal/testtools/fault",
		"internal/mailboxd-needs-linux", "internal/stores/seal",
	},
}

// forbidden narrows the table: the packages on the left never import these,
// although their row would let them.
var forbidden = map[string][]string{
	"dispatch":          {"internal/decisions/policy", "internal/running/agent"},
	"dispatch/intake":   {"internal/decisions/policy", "internal/running/agent"},
	"dispatch/executor": {"internal/decisions/policy", "internal/running/agent"},
	"dispatch/exchange": {"internal/decisions/policy", "internal/running/agent"},
	"dispatch/outbox":   {"internal/decisions/policy", "internal/running/agent"},
	"dispatch/store":    {"internal/decisions/policy", "internal/running/agent"},
	"envelope/dialect":  {"internal/testtools/fault", "internal/testtools/strict"}, // protocols need the types alone
	"watcher": {
		"dispatch", "envelope", "mailbox",
		"internal/decisions/policy", "internal/running/agent", "internal/stores/ledger", "internal/running/runner",
	},
}

// module is the path of the module and a slash, which begins the path of each package of ours.
var module = modulePath() + "/"

func modulePath() string {
	path, err := os.ReadFile("release/module")
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(path))
}

// owners are the only packages that import a dependency or a package of ours.
var owners = map[string][]string{
	"github.com/fsnotify/fsnotify":                           {"watcher", "internal/running/toolcall", "internal/running/acp"},
	"github.com/coder/acp-go-sdk":                            {"internal/running/acp"},
	"github.com/spf13/cobra":                                 {"cmd/mailboxd", "cmd/mailboxd-hub", "internal/cli/exit"},
	"github.com/spf13/cobra/doc":                             {"cmd/mailboxd", "cmd/mailboxd-hub"},
	"github.com/spf13/viper":                                 {"internal/operating/config"},
	"database/sql":                                           {"internal/stores/ledger", "internal/operating/runnerdaemon"},
	"modernc.org/sqlite":                                     {"internal/stores/ledger", "internal/operating/runnerdaemon"},
	"github.com/secure-systems-lab/go-securesystemslib/dsse": {"internal/stores/bundle"},
	"github.com/Masterminds/semver/v3":                       {"internal/decisions/route"},
	"golang.org/x/crypto/ssh":                                {"internal/access/proof"},
	"github.com/santhosh-tekuri/jsonschema/v6":               {"internal/running/schema"},
	"internal/operating/config": {
		"cmd/mailboxd", "internal/operating/daemon", "internal/operating/registry", "internal/operating/runnerdaemon",
	},
	"github.com/modelcontextprotocol/go-sdk/mcp": {
		"internal/access/mcpserver", "internal/running/external", "internal/running/broker", "internal/testtools/toolcaller", "bench",
	},
	"github.com/nats-io/nats-server/v2/server":  {"internal/operating/hub"},
	"github.com/nats-io/nats.go":                {"internal/running/carrier", "bench"}, // bench counts messages
	"github.com/nats-io/nats.go/jetstream":      {"internal/running/carrier"},
	"github.com/nats-io/nkeys":                  {"internal/running/carrier", "internal/operating/hub"},
	"internal/operating/hub":                    {"cmd/mailboxd-hub"},
	"github.com/a2aproject/a2a-go/v2/a2asrv":    {"internal/access/gateway", "internal/testtools/a2astub"},
	"github.com/a2aproject/a2a-go/v2/a2aclient": {"internal/running/remote"},
	"github.com/bluekeyes/go-gitdiff/gitdiff":   {"internal/access/web"},
	"github.com/alecthomas/chroma/v2":           {"internal/access/web", "internal/access/web/code"},
	"github.com/yuin/goldmark":                  {"internal/access/web/agenttext"},
	"github.com/yuin/goldmark/ast":              {"internal/access/web/agenttext"},
	"github.com/yuin/goldmark/extension":        {"internal/access/web/agenttext"},
	"github.com/yuin/goldmark/parser":           {"internal/access/web/agenttext"},
	"github.com/yuin/goldmark/renderer":         {"internal/access/web/agenttext"},
	"github.com/yuin/goldmark/renderer/html":    {"internal/access/web/agenttext"},
	"github.com/yuin/goldmark/text":             {"internal/access/web/agenttext"},
	"github.com/yuin/goldmark/util":             {"internal/access/web/agenttext"},
}

func TestImportsGoOnlyToRowsBelow(t *testing.T) {
	for path, file := range sources(t) {
		from := filepath.ToSlash(filepath.Dir(path))
		if strings.HasPrefix(from, "examples") || strings.HasSuffix(path, "_test.go") {
			continue // examples stand alone, and tests may look from outside
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if complaint := judge(from, imported); complaint != "" {
				t.Errorf("%s imports %s: %s", path, imported, complaint)
			}
		}
	}
}

func judge(from, imported string) string {
	ours, ok := strings.CutPrefix(imported, module)
	if allowed := owners[ours]; allowed != nil && !slices.Contains(allowed, from) {
		return "only " + strings.Join(allowed, " and ") + " may"
	}
	if !ok {
		return ""
	}
	fromRow, fromEntry := row(from)
	oursRow, oursEntry := row(ours)
	switch {
	case fromRow < 0:
		return from + " is not in the import table"
	case oursRow < 0:
		return ours + " is not in the import table"
	case oursRow < fromRow, oursRow == fromRow && oursEntry != fromEntry:
		return "imports go only to rows below"
	case slices.Contains(forbidden[from], ours):
		return from + " never meets " + ours
	}
	return ""
}

// pure are the packages that decide and do nothing: of ours they import each other
// and envelope alone, and nothing of the standard library that reaches the system,
// waits or draws lots. They ask no clock.
var pure = []string{
	"internal/decisions/core", "internal/decisions/conversation", "internal/decisions/policy", "internal/decisions/fleet",
	"internal/decisions/route", "internal/decisions/sign", "internal/decisions/task", "internal/running/transcript", "internal/stores/seal",
}

// fixed are the functions of envelope/dialect that a pure package may call: each depends
// on its arguments alone. The rest may not be called, since Encode and Receive take a time
// from the clock for a message without one, and NewID draws lots.
var fixed = []string{"TaskID", "FailureOf", "Beside", "ClutchCode", "ClutchCodeOf", "CommandHash"}

// impure are the packages that a pure one does not import, with all below them, and
// clocks are the functions of time that it does not call.
var (
	impure = []string{"os", "io/fs", "sync", "context", "net", "database/sql", "math/rand", "syscall", "golang.org/x/sys"}
	clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
)

func TestPurePackagesReachNothingOutside(t *testing.T) {
	all := sources(t)
	for _, pkg := range pure {
		found := false
		for path, file := range all {
			if filepath.ToSlash(filepath.Dir(path)) != pkg || strings.HasSuffix(path, "_test.go") {
				continue
			}
			found = true
			for _, complaint := range impurities(file) {
				t.Errorf("%s is in a pure package and %s", path, complaint)
			}
		}
		if !found {
			t.Errorf("%s is to be pure and has no files", pkg)
		}
		for _, reached := range closure(all, pkg) {
			if reached != "envelope" && reached != "envelope/dialect" && !slices.Contains(pure, reached) {
				t.Errorf("%s is pure and reaches %s, which is not", pkg, reached)
			}
		}
	}
}

// impurities are what a file of a pure package does that it may not.
func impurities(file *ast.File) (all []string) {
	clock, dialects := "", ""
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		below := func(forbidden string) bool {
			return imported == forbidden || strings.HasPrefix(imported, forbidden+"/")
		}
		if slices.ContainsFunc(impure, below) {
			all = append(all, "imports "+imported)
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		switch imported {
		case "time":
			clock = name
		case module + "envelope/dialect":
			dialects = name
		}
	}
	for node := range ast.Preorder(file) {
		call, ok := node.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		of, ok := call.X.(*ast.Ident)
		switch {
		case !ok:
		case of.Name == clock && slices.Contains(clocks, call.Sel.Name):
			all = append(all, "uses time."+call.Sel.Name)
		case of.Name == dialects && !slices.Contains(fixed, call.Sel.Name):
			all = append(all, "uses dialect."+call.Sel.Name)
		}
	}
	return all
}

// closure returns the packages of ours that one imports, and those that these do,
// tests left out.
func closure(all map[string]*ast.File, pkg string) (reached []string) {
	for next := []string{pkg}; len(next) > 0; next = next[1:] {
		for path, file := range all {
			if filepath.ToSlash(filepath.Dir(path)) != next[0] || strings.HasSuffix(path, "_test.go") {
				continue
			}
			for _, spec := range file.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				if ours, ok := strings.CutPrefix(imported, module); ok && !slices.Contains(reached, ours) {
					reached, next = append(reached, ours), append(next, ours)
				}
			}
		}
	}
	return reached
}

func TestImpuritiesAreFound(t *testing.T) {
	for source, want := range map[string]string{
		`package p; import "os"`:                                                           "imports os",
		`package p; import "os/exec"`:                                                      "imports os/exec",
		`package p; import "io/fs"`:                                                        "imports io/fs",
		`package p; import "sync/atomic"`:                                                  "imports sync/atomic",
		`package p; import "math/rand/v2"`:                                                 "imports math/rand/v2",
		`package p; import "time"; var at = time.Now()`:                                    "uses time.Now",
		`package p; import "` + module + `envelope/dialect"; var id = dialect.NewID()`:     "uses dialect.NewID",
		`package p; import "` + module + `envelope/dialect"; var id = dialect.TaskID("a")`: "",
		`package p; import clock "time"; var now = clock.Now`:                              "uses time.Now",
		`package p; import ("io"; "time"; "math"); var d = time.Duration(0)`:               "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(impurities(file), "; "); got != want {
			t.Errorf("impurities of %s = %q; want %q", source, got, want)
		}
	}
}

func TestClosureFollowsImports(t *testing.T) {
	if got := closure(sources(t), "watcher"); len(got) != 0 {
		t.Errorf("watcher reaches %v; want nothing of ours", got)
	}
	got := closure(sources(t), "internal/decisions/policy")
	slices.Sort(got)
	if !slices.Contains(got, "envelope") || slices.Contains(got, "internal/decisions/policy") {
		t.Errorf("internal/decisions/policy reaches %v; want envelope among it, and not itself", got)
	}
}

// row returns the row of a package and its entry there, the longest that fits; -1 for none.
func row(pkg string) (at int, entry string) {
	at = -1
	for i, entries := range rows {
		for _, e := range entries {
			if (pkg == e || strings.HasPrefix(pkg, e+"/")) && len(e) > len(entry) {
				at, entry = i, e
			}
		}
	}
	return at, entry
}

func TestEveryGoroutineHasSomebodyWaitingForIt(t *testing.T) {
	for path, file := range sources(t) {
		for node := range ast.Preorder(file) {
			if _, bare := node.(*ast.GoStmt); bare {
				t.Errorf("%s has a bare go statement; use sync.WaitGroup.Go or errgroup.Group.Go", path)
			}
		}
	}
}

func TestEveryPackageOpensWithASentence(t *testing.T) {
	documented := map[string]bool{}
	for path, file := range sources(t) {
		dir := filepath.Dir(path)
		said := file.Doc != nil && strings.Contains(file.Doc.Text(), ".")
		documented[dir] = documented[dir] || said
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

func TestTheTableCatchesWhatItForbids(t *testing.T) {
	for _, bad := range [][2]string{
		{"envelope", module + "mailbox"},
		{"mailbox", module + "internal/stores/ledger"},
		{"dispatch", module + "internal/decisions/policy"},
		{"envelope/dialect", module + "internal/testtools/strict"},
		{"envelope/dialect", module + "mailbox"},
		{"watcher", module + "envelope"},
		{"dispatch", "github.com/fsnotify/fsnotify"},
		{"internal/running/agent", "github.com/spf13/viper"},
		{"mailbox", "database/sql"},
		{"utils", module + "envelope"},
		{"internal/utils", module + "envelope"},
		{"dispatch/store", module + "dispatch/outbox"},
		{"dispatch/exchange", module + "dispatch"},
	} {
		if judge(bad[0], bad[1]) == "" {
			t.Errorf("%s may import %s; want it refused", bad[0], bad[1])
		}
	}
}

// fileSet has the positions of all sources.
var fileSet = token.NewFileSet()

// sources parses every Go file of the module, tests included.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(path) > 1 && strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(fileSet, path, nil, parser.ParseComments)
		files[path] = file
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
