// Package mailboxd_test holds the rules of the house that a compiler does not:
// who may import whom, and that every goroutine has somebody waiting for it.
package mailboxd_test

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
)

// rows is the import table: a package imports only from rows below its own.
var rows = [][]string{
	{"cmd/mailboxd", "internal/torture", "bench"},     // wiring, and what tries to break and to measure it
	{"watcher", "internal/api", "internal/mcpserver"}, // doors
	{"dispatch"}, // engine
	{"internal/policy", "internal/agent", "internal/talk"}, // parts
	{"mailbox", "envelope/dialect", "internal/ledger", "internal/runner", "internal/worker", "internal/schema", "internal/client", "internal/service", "internal/host"}, // hands
	{"envelope"}, // words
	{"internal/fault", "internal/strict", "internal/slack"}, // marks for the tests, nothing in an ordinary build; when the kernel wakes us
}

// forbidden narrows the table: the packages on the left never import these,
// although their row would let them.
var forbidden = map[string][]string{
	"dispatch":         {"internal/policy", "internal/agent"},
	"envelope/dialect": {"internal/fault", "internal/strict"}, // a protocol's words need nothing but our own
	"watcher":          {"dispatch", "internal/policy", "internal/agent", "mailbox", "internal/ledger", "internal/runner", "envelope"},
}

// owners are the only rooms in which a dependency may be seen.
var owners = map[string]string{
	"github.com/fsnotify/fsnotify":               "watcher",
	"github.com/spf13/cobra":                     "cmd/mailboxd",
	"github.com/spf13/viper":                     "cmd/mailboxd",
	"database/sql":                               "internal/ledger",
	"modernc.org/sqlite":                         "internal/ledger",
	"github.com/santhosh-tekuri/jsonschema/v6":   "internal/schema",
	"github.com/modelcontextprotocol/go-sdk/mcp": "internal/mcpserver",
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
	if owner := owners[imported]; owner != "" && owner != from {
		return "only " + owner + " may"
	}
	ours, ok := strings.CutPrefix(imported, "mailboxd/")
	if !ok {
		return ""
	}
	switch {
	case row(from) < 0:
		return from + " is not in the import table"
	case row(ours) < 0:
		return ours + " is not in the import table"
	case row(ours) <= row(from):
		return "imports go only to rows below"
	case slices.Contains(forbidden[from], ours):
		return from + " never meets " + ours
	}
	return ""
}

func row(pkg string) int {
	return slices.IndexFunc(rows, func(r []string) bool { return slices.Contains(r, pkg) })
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
		{"envelope", "mailboxd/mailbox"},
		{"mailbox", "mailboxd/internal/ledger"},
		{"dispatch", "mailboxd/internal/policy"},
		{"envelope/dialect", "mailboxd/internal/strict"},
		{"envelope/dialect", "mailboxd/mailbox"},
		{"watcher", "mailboxd/envelope"},
		{"dispatch", "github.com/fsnotify/fsnotify"},
		{"internal/agent", "github.com/spf13/viper"},
		{"mailbox", "database/sql"},
		{"utils", "mailboxd/envelope"},
	} {
		if judge(bad[0], bad[1]) == "" {
			t.Errorf("%s may import %s; want it refused", bad[0], bad[1])
		}
	}
}

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
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		files[path] = file
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
