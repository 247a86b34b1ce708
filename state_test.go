package mailboxd_test

import (
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// taskMemory are the fields of a running daemon that remember something about a task or a run,
// with the reason that each is not a row or a query of the ledger. A new one needs a reason that
// a reader of ARCHITECTURE.md accepts, and a higher limit below.
var taskMemory = map[string]string{
	"executor.FreshTasks.tasks":          "lines just decoded, so that a task that starts at once is not decoded again",
	"ledger.Ledger.queued":               "changes that the next group writes",
	"ledger.rows.runs":                   "runs that the last transactions read or wrote: to read rows again is a sixth of the processor time of a task",
	"ledger.rows.tasks":                  "the same of tasks",
	"outbox.Callbacks.open":              "callbacks made while others of the task failed, so that none is repeated before a restart",
	"outbox.attempts.made":               "the same, by name",
	"schedule.DutyQueue.tasks":           "tasks that are notified of, or whose lines or results are put next; columns say it after a start",
	"schedule.Limits.agents":             "the limits of providers; the held tasks say until when after a start",
	"schedule.agentLimit.released":       "tasks that a person let start nevertheless",
	"schedule.Queue.agents":              "slots taken by live runs",
	"schedule.Queue.requesters":          "the same, by requester",
	"schedule.Queue.begun":               "runs that are intended and wait for a worker",
	"schedule.Queue.waiting":             "the queue; an index could be it",
	"schedule.backlog.atLimit":           "the part of the queue whose requesters have no slot",
	"schedule.backlog.lines":             "the queue, by requester and priority",
	"schedule.line.items":                "the queue, in order",
	"schedule.Timers.soon":               "pauses before another look at a task, after a fault or between attempts; tasks.due has the times of day",
	"schedule.WorkerPool.jobs":           "ends of runs that are being written",
	"store.History.marks":                "what of a conversation the last run got",
	"store.Performance.agents":           "how the latest runs of each agent ended, for the choice of agents; a query on runs at the start",
	"store.RecentRuns.runs":              "runs that ended since the last look at the lines",
	"store.ResultLocks.held":             "ids whose result file is being moved",
	"store.Run.over":                     "the end of a live run",
	"store.RunSet.all":                   "handles of live runs, to end and await them",
	"store.RunSet.refused":               "refused tasks whose results are not put yet, for callers that read them at once",
	"store.UnusedDirs.paths":             "run directories whose intent may be on the disk although the commit failed",
	"store.agentRuns.faults":             "part of store.Performance",
	"store.Draft.Result":                 "the result of an end that is being written",
	"store.FaultLog.by":                  "which task met a fault of the machine last",
	"store.publication.Published":        "the result of a live run is put",
	"store.publication.MayHaveSuccessor": "a later revision may have come",
	"store.Run.Began":                    "the process of a live run has begun",
	"store.Run.Stopped":                  "a live run was told to end",
}

// mostTaskMemory only falls.
const mostTaskMemory = 33

// otherMemory are the other fields that keep or guard something: locks, signals, and what is
// about the process, an agent or a file.
var otherMemory = strings.Fields(`
	dispatch.Dispatcher.failed dispatch.Dispatcher.lookMu dispatch.controls.applying dispatch.controls.collecting
	dispatch.readiness.ready dispatch.router.changed dispatch.router.mu
	executor.Executor.Endings executor.FreshTasks.mu
	intake.Intake.DeadLetters intake.RunFiles.faults intake.RunFiles.kept
	ledger.Ledger.background ledger.Ledger.between ledger.Ledger.changed ledger.Ledger.closing ledger.Ledger.mu
	ledger.Ledger.woken ledger.checkpointer.due ledger.statements.kept ledger.statements.mu ledger.update.done
	outbox.Callbacks.Mu
	outbox.Publisher.endings outbox.Publisher.missing outbox.Publisher.roots
	schedule.DutyQueue.Added schedule.DutyQueue.empty schedule.DutyQueue.mu schedule.Limits.mu schedule.Queue.changed schedule.Queue.mu
	schedule.Queue.room schedule.Queue.work schedule.Timers.changed schedule.Timers.mu schedule.WorkerPool.idle
	schedule.WorkerPool.over schedule.WorkerPool.workers
	store.Counts.accepted store.Counts.ended store.Counts.mu store.Counts.runs store.FaultLog.mu store.FaultLog.now
	store.Options.RefRoots store.Pauses.Changing store.Pauses.Holding store.Pauses.agents
	store.Pauses.mu store.Performance.mu store.Presence.agents store.Presence.mu store.RecentRuns.mu
	store.ResultLocks.mu store.RunSet.mu store.UnusedDirs.mu store.idLock.Mutex store.meter.mu
`)

func TestTheEngineRemembersOnlyWhatIsListedHere(t *testing.T) {
	found := memoryFields(t)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if taskMemory[name] == "" && !slices.Contains(otherMemory, name) {
			t.Errorf("%s keeps something, and is in no list: say what a task or a run loses without it", name)
		}
	}
	for name := range taskMemory {
		if !found[name] {
			t.Errorf("%s is listed, and is gone", name)
		}
	}
	for _, name := range otherMemory {
		if !found[name] {
			t.Errorf("%s is listed, and is gone", name)
		}
	}
	if len(taskMemory) > mostTaskMemory {
		t.Errorf("%d fields remember something about a task or a run; want at most %d", len(taskMemory), mostTaskMemory)
	}
}

// memoryFields returns the fields of the structs that live as long as a daemon.
func memoryFields(t *testing.T) map[string]bool {
	structs := longLived(t)
	found := map[string]bool{}
	for name, of := range reachable(structs, "dispatch.Dispatcher", "ledger.Ledger") {
		for _, f := range of.Fields.List {
			if !remembers(f.Type) {
				continue
			}
			for _, n := range f.Names {
				found[name+"."+n.Name] = true
			}
			if len(f.Names) == 0 {
				found[name+"."+typeName(f.Type)] = true
			}
		}
	}
	return found
}

// longLived returns the structs of the packages whose values may live as long as a daemon.
func longLived(t *testing.T) map[string]*ast.StructType {
	structs := map[string]*ast.StructType{}
	for path, file := range sources(t) {
		dir := filepath.ToSlash(filepath.Dir(path))
		known := dir == "internal/stores/ledger" || dir == "internal/running/schedule" ||
			dir == "dispatch" || strings.HasPrefix(dir, "dispatch/")
		if !known || strings.HasSuffix(path, "_test.go") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if of, ok := spec.Type.(*ast.StructType); ok {
					structs[file.Name.Name+"."+spec.Name.Name] = of
				}
			}
			return true
		})
	}
	return structs
}

// reachable returns the structs that fields lead to from some of them.
func reachable(structs map[string]*ast.StructType, from ...string) map[string]*ast.StructType {
	reached := map[string]*ast.StructType{}
	for len(from) > 0 {
		name := from[0]
		from = from[1:]
		of := structs[name]
		if of == nil || reached[name] != nil {
			continue
		}
		reached[name] = of
		pkg, _, _ := strings.Cut(name, ".")
		for _, f := range of.Fields.List {
			from = append(from, named(pkg, f.Type)...)
		}
	}
	return reached
}

// named returns the names of the types in the type of a field of a package.
func named(pkg string, field ast.Expr) (names []string) {
	ast.Inspect(field, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			return false
		case *ast.SelectorExpr:
			if from, ok := n.X.(*ast.Ident); ok {
				names = append(names, from.Name+"."+n.Sel.Name)
			}
			return false
		case *ast.Ident:
			names = append(names, pkg+"."+n.Name)
		}
		return true
	})
	return names
}

// remembers reports whether a field of that type keeps something, or guards what is kept.
func remembers(field ast.Expr) bool {
	switch f := field.(type) {
	case *ast.MapType, *ast.ChanType:
		return true
	case *ast.ArrayType:
		return true
	case *ast.StarExpr:
		return remembers(f.X) && typeName(f.X) != ""
	case *ast.SelectorExpr:
		from, ok := f.X.(*ast.Ident)
		return ok && (from.Name == "sync" || from.Name == "atomic")
	}
	return false
}

// typeName is the last name in a type.
func typeName(field ast.Expr) string {
	switch f := field.(type) {
	case *ast.StarExpr:
		return typeName(f.X)
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}
