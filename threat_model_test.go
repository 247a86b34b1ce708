package mailboxd_test

import (
	"encoding/json"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
)

const threatModel = "docs/threat-model.md"

// contract names, by the heading of their table, the examples of the contract
// that between them have all its fields.
var contract = map[string]string{
	"AgentManifest":    "manifest-openclaw.monitor.json",
	"AgentTaskRequest": "request-task-2026-03-09-0001.json",
	"AgentTaskResult":  "result-task-2026-03-09-0001.json",
}

// A row of the threat model's tables says what is held of a field, by whom, and
// which tests would fail if it were not.
type ruling struct{ rule, level, tests string }

func TestEveryFieldOfTheContractHasARowInTheThreatModel(t *testing.T) {
	tables := rulings(t)
	for heading, file := range contract {
		text, err := os.ReadFile(filepath.Join("envelope/testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		var document any
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		for _, field := range fields("", document) {
			if tables[heading][field] == (ruling{}) {
				t.Errorf("%s: the table %s has no row for `%s`", threatModel, heading, field)
			}
		}
	}
}

// A control that is not named in any row would be held in silence.
func TestEveryControlHasARowInTheThreatModel(t *testing.T) {
	text, err := os.ReadFile(threatModel)
	if err != nil {
		t.Fatal(err)
	}
	for _, control := range envelope.Controls() {
		if !strings.Contains(string(text), "`"+string(control)+"`") {
			t.Errorf("%s does not say what the control %s holds", threatModel, control)
		}
	}
}

func TestEveryRowOfTheThreatModelNamesALevelAndTestsThatExist(t *testing.T) {
	tests := testsOfTheHouse(t)
	levels := []string{"none", string(envelope.LevelKernel), string(envelope.LevelPartial), string(envelope.LevelDaemon), string(envelope.LevelAgentFlag),
		string(envelope.LevelObserved), string(envelope.LevelAdvisory)}
	for heading, rows := range rulings(t) {
		for field, row := range rows {
			for _, level := range strings.Split(row.level, ", ") {
				if !slices.Contains(levels, level) {
					t.Errorf("%s, %s, `%s`: %q is no level", threatModel, heading, field, level)
				}
			}
			named := quoted.FindAllStringSubmatch(row.tests, -1)
			if row.level != "none" && len(named) == 0 {
				t.Errorf("%s, %s, `%s`: names no test", threatModel, heading, field)
			}
			for _, name := range named {
				if !tests[name[1]] {
					t.Errorf("%s, %s, `%s`: there is no test %s", threatModel, heading, field, name[1])
				}
			}
		}
	}
}

var quoted = regexp.MustCompile("`([^`]+)`")

// rulings reads the tables of the threat model that have a field in backticks
// in their first column: by their heading, then by field.
func rulings(t *testing.T) map[string]map[string]ruling {
	t.Helper()
	text, err := os.ReadFile(threatModel)
	if err != nil {
		t.Fatal(err)
	}
	tables, heading := map[string]map[string]ruling{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "### "); ok {
			heading = title
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| `") || len(cells) != 4 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if tables[heading] == nil {
			tables[heading] = map[string]ruling{}
		}
		for _, field := range quoted.FindAllStringSubmatch(cells[0], -1) {
			tables[heading][field[1]] = ruling{rule: cells[1], level: cells[2], tests: cells[3]}
		}
	}
	return tables
}

// opaque are the fields whose members are nobody's contract.
var opaque = []string{"metadata", "input.payload", "requires_human_approval.for_task_types"}

// fields lists the paths of all members that have none themselves.
func fields(path string, value any) (paths []string) {
	switch value := value.(type) {
	case map[string]any:
		if slices.Contains(opaque, path) {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			paths = append(paths, fields(strings.TrimPrefix(path+"."+name, "."), value[name])...)
		}
		return paths
	case []any:
		if len(value) > 0 {
			if object, ok := value[0].(map[string]any); ok {
				return fields(path+"[]", object)
			}
		}
	}
	return []string{path}
}

// testsOfTheHouse knows every test function, every script by its file, and the
// cases named after a requirement in the tables of its file, as TestX/AINL-44.
func testsOfTheHouse(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	for path, file := range sources(t) {
		if !strings.HasSuffix(path, "_test.go") {
			continue
		}
		rules := requirementsIn(file)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") && !strings.HasPrefix(f.Name.Name, "Fuzz") {
				continue
			}
			known[f.Name.Name] = true
			for _, rule := range rules {
				known[f.Name.Name+"/"+rule] = true
			}
		}
	}
	scripts, err := filepath.Glob("cmd/mailboxd/testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		known[filepath.Base(script)] = true
	}
	return known
}

var requirement = regexp.MustCompile(`^"(AINL-\d+)( [^:%]*)?"$`)

// requirementsIn lists the requirements that the tables of a test file name
// their cases by. What a test says when it fails names no case.
func requirementsIn(file *ast.File) (rules []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		table, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		for _, member := range table.Elts {
			if pair, ok := member.(*ast.KeyValueExpr); ok {
				member = pair.Value
			}
			if text, ok := member.(*ast.BasicLit); ok {
				if named := requirement.FindStringSubmatch(text.Value); named != nil {
					rules = append(rules, named[1])
				}
			}
		}
		return true
	})
	return rules
}
