package mailboxd_test

import (
	"go/ast"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostSteps is how many functions a walk of docs/engine.md may list.
const mostSteps = 12

// methodName finds the names of methods in a page, and calledFar has the steps that follow
// without a call.
var (
	methodName = regexp.MustCompile("`([a-z]+\\.[A-Za-z]+\\.[A-Za-z]+)`")
	calledFar  = []string{
		"exchange.Acceptor.Accept dispatch.steps.onCommitted",    // by acceptBatch, after the commit
		"dispatch.steps.onCommitted executor.Executor.attempt",   // by the queue
		"agent.Agents.Run executor.Executor.finish",              // by attempt, with the outcome
		"exchange.Completer.Apply outbox.Publisher.Settle",       // by onCommitted, after the commit
		"outbox.Messenger.WakeFor dispatch.steps.onCommitted",    // after the commit
		"dispatch.steps.onCommitted outbox.Messenger.deliverDue", // by a signal
		"outbox.Messenger.deliverDue exchange.Delegator.emitAll", // by the run of the agent
	}
)

// TestWalksOfTheEngineAreItsCalls compares the walks of docs/engine.md with the code: each step has
// a function, which reaches that of the next step in a few calls.
func TestWalksOfTheEngineAreItsCalls(t *testing.T) {
	page, err := os.ReadFile("docs/engine.md")
	if err != nil {
		t.Fatal(err)
	}
	calls := callsOfMethods(t)
	for _, title := range []string{"## The calls of a plain task", "## The calls of a CLowl question to an agent"} {
		_, section, found := strings.Cut(string(page), title+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		if !found {
			t.Fatalf("docs/engine.md has no section %q", title)
		}
		steps := regexp.MustCompile(`(?m)^[0-9]+\. .*$`).FindAllString(section, -1)
		if len(steps) == 0 || len(steps) > mostSteps {
			t.Errorf("%q has %d steps; want 1 to %d", title, len(steps), mostSteps)
		}
		before := ""
		for _, step := range steps {
			match := methodName.FindStringSubmatch(step)
			if match == nil || !strings.Contains(step, ". `"+match[1]+"`") {
				t.Errorf("%q begins with no method", step)
				continue
			}
			if before != "" && !slices.Contains(calledFar, before+" "+match[1]) && !reaches(calls, before, match[1], 4) {
				t.Errorf("%s doesn't reach %s, the next step of %q", before, match[1], title)
			}
			before = match[1]
		}
		for _, match := range methodName.FindAllStringSubmatch(section, -1) {
			if _, found := calls[match[1]]; !found {
				t.Errorf("%q names %s, which is no method", title, match[1])
			}
		}
	}
}

// callsOfMethods returns the names of what each method calls. A method has the name of its
// package, type and self.
func callsOfMethods(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for path, file := range sources(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Body == nil {
				continue
			}
			called := map[string]bool{}
			for node := range ast.Preorder(f.Body) {
				if s, ok := node.(*ast.SelectorExpr); ok {
					called[s.Sel.Name] = true
				}
			}
			all[file.Name.Name+"."+receiverOf(f)+"."+f.Name.Name] = called
		}
	}
	return all
}

// reaches reports whether a method reaches another one in a number of calls, by the names of
// methods of the packages of both.
func reaches(calls map[string]map[string]bool, from, to string, most int) bool {
	pkg := func(name string) string { return name[:strings.Index(name, ".")] }
	own := func(name string) string { return name[strings.LastIndex(name, ".")+1:] }
	reached := map[string]bool{from: true}
	for range most {
		for name := range maps.Clone(reached) {
			for called := range calls[name] {
				if called == own(to) {
					return true
				}
				for next := range calls {
					if own(next) == called && (pkg(next) == pkg(from) || pkg(next) == pkg(to)) {
						reached[next] = true
					}
				}
			}
		}
	}
	return false
}
