package torture_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A point is a place in the source at which a process may die.
type point struct {
	name   string
	keeper bool // it is the keeper that comes by, not the daemon
	sync   bool // it is behind a sync
}

// beginnings are the points that a mailbox comes by once, with nothing to lose.
// Power is cut there, on new ones; those that are tortured have them behind them.
var beginnings = []string{"claim-synced", "directory-named", "key-file-synced", "ledger-named", "ledger-synced"}

// elsewhere are the packages whose fault points another test comes by: that of runners.
var elsewhere = []string{"internal/operating/runnerdaemon", "internal/running/owner"}

// faultPoints finds every fault.Point("name"), and every Synced and SyncedAt,
// in the source of this module, so that none can be forgotten.
func faultPoints() ([]point, error) {
	found := map[point]bool{}
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		isElsewhere := func(dir string) bool { return strings.HasSuffix(filepath.Dir(path), dir) }
		if slices.ContainsFunc(elsewhere, isElsewhere) {
			return nil
		}
		for node := range ast.Preorder(file) {
			if name, sync, ok := pointName(node); ok {
				found[point{name, strings.HasSuffix(filepath.Dir(path), "internal/running/runner"), sync}] = true
			}
		}
		return nil
	})
	return slices.SortedFunc(maps.Keys(found), func(a, b point) int { return strings.Compare(a.name, b.name) }), err
}

func pointName(node ast.Node) (name string, sync, ok bool) {
	call, ok := node.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return "", false, false
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false, false
	}
	if pkg, ok := function.X.(*ast.Ident); !ok || pkg.Name != "fault" || function.Sel.Name == "Read" { // nothing dies at a read that fails
		return "", false, false
	}
	text, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return "", false, false
	}
	name, err := strconv.Unquote(text.Value)
	return name, function.Sel.Name != "Point", err == nil
}

// A crossing is what happened at one point.
type crossing struct{ crossed, died int }

// crossings reads what the daemons have logged.
func (s *site) crossings() (map[string]crossing, error) {
	text, err := os.ReadFile(s.path("faults"))
	if err != nil {
		return nil, err
	}
	all := map[string]crossing{}
	for line := range strings.Lines(string(text)) {
		var what, name string
		if n, _ := fmt.Sscan(line, &what, &name); n < 2 {
			return nil, fmt.Errorf("read fault log: %q", line)
		}
		c := all[name]
		switch what {
		case "died":
			c.died++
		case "crossed":
			c.crossed++
		default:
			continue // about the disk
		}
		all[name] = c
	}
	return all, nil
}
