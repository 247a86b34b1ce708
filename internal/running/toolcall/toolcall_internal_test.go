package toolcall

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailboxd/internal/decisions/task"
)

// asked returns the calls of a run whose rules allow edits in src, in a directory with some links.
func asked(t *testing.T) (c *Calls, dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"src", "docs"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"src/out": t.TempDir(), "src/docs": "../docs", "src/nothing": "/nonexistent/file"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	j := task.Job{Dir: t.TempDir(), Terms: task.Terms{Calls: &task.CallRules{
		Rules: []task.CallRule{{Kind: task.CallEdit, Paths: []string{"src/**"}, Do: task.AllowCall}},
	}}}
	if err := Prepare(j, dir); err != nil {
		t.Fatal(err)
	}
	return again(t, j), dir
}

// again returns the calls of a run as a daemon reads them after a restart.
func again(t *testing.T, j task.Job) *Calls {
	t.Helper()
	c := New(j, filepath.Join(j.Dir, "progress.jsonl"))
	t.Cleanup(c.Close)
	return c
}

func answersOf(t *testing.T, c *Calls) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.job.Dir, AnswersFile))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func TestAPathOfACallCountsWhereItsLinksLead(t *testing.T) {
	c, dir := asked(t)
	for name, want := range map[string]string{
		"src/a.go":                "src/a.go",
		dir + "/src/new/dir/a.go": "src/new/dir/a.go",
		"src/../src/a.go":         "src/a.go",
		"src/docs/a.md":           "docs/a.md",
		"src/docs/../a.md":        "a.md",
		".":                       ".",
		"src/out/a.go":            "",
		"src/nothing":             "",
		"src/nothing/a":           "",
		"../x":                    "",
		"src/../../x":             "",
		"/etc/passwd":             "",
		"":                        "",
		"src/a\x00b":              "",
		"src/a\uFFFD":             "",
		dir + "x/a":               "",
		"src/new/../a":            "",
	} {
		got, inside := c.inside(name)
		if inside != (want != "") || inside && got != want {
			t.Errorf("inside(%q) = %q, %t; want %q", name, got, inside, want)
		}
	}
}

func TestEachCallIsAnsweredOnceAlsoAfterARestart(t *testing.T) {
	c, _ := asked(t)
	ask := func(c *Calls, id, path string) {
		c.Ask(Line{ID: id, Kind: task.CallEdit, Paths: []string{path}})
	}
	ask(c, "1", "src/a")
	ask(c, "2", "docs/a")
	ask(c, "1", "docs/a") // the same id has the same answer
	c = again(t, c.job)
	ask(c, "2", "src/a")
	ask(c, "3", "src/docs/a")
	want := []string{
		`{"id":"1","decision":"allow","reason":"acp.rules[0] says allow"}`,
		`{"id":"2","decision":"reject","reason":"no rule allows it"}`,
		`{"id":"3","decision":"reject","reason":"no rule allows it"}`,
	}
	if diff := cmp.Diff(want, answersOf(t, c)); diff != "" {
		t.Errorf("answers are (-want +got):\n%s", diff)
	}
	if c.violation != nil {
		t.Errorf("violation = %v; want none", c.violation)
	}
}

func TestACallWaitsForAPersonUntilThereIsADecision(t *testing.T) {
	c, _ := asked(t)
	c.job.Calls.Otherwise = task.AskPerson
	var decision task.CallDecision
	var questions []string
	c.job.Ask = func(call task.Call, made bool) (task.CallDecision, error) {
		questions = append(questions, fmt.Sprint(call.ID, made))
		return decision, nil
	}
	c.Ask(Line{ID: "1", Kind: task.CallFetch, Title: "a page"})
	c.Ask(Line{ID: "1", Kind: task.CallFetch, Title: "a page"})
	if !c.DecideOpen() || len(c.open) != 1 {
		t.Fatalf("open are %v; want the one call", c.open)
	}
	decision = task.CallDecision{Answer: task.AllowCall, By: "ada", Reason: "fine"}
	if c.DecideOpen() {
		t.Error("it waits after the decision")
	}
	if got, want := answersOf(t, c), []string{`{"id":"1","decision":"allow","by":"ada","reason":"fine"}`}; !slices.Equal(got, want) {
		t.Errorf("answers = %q; want %q", got, want)
	}
	if want := []string{"1false", "1false"}; !slices.Equal(questions, want) {
		t.Errorf("questions = %q; want %q", questions, want)
	}
}

func TestARunThatBreaksTheRulesOfCallsEnds(t *testing.T) {
	for name, use := range map[string]func(*Calls){
		"it asked about a call without an id, or with":  func(c *Calls) { c.Ask(Line{Kind: task.CallEdit}) },
		"it asked about more than 10000 calls":          askTooOften,
		"it made a call without asking, edit docs/a: ":  func(c *Calls) { c.Called(Line{ID: "1", Kind: task.CallEdit, Paths: []string{"docs/a"}}) },
		"it made a call without asking,  something: no": func(c *Calls) { c.Called(Line{Title: "something"}) },
	} {
		c, _ := asked(t)
		use(c)
		if c.violation == nil || !strings.HasPrefix(c.violation.Error(), name) {
			t.Errorf("violation = %v; want %q", c.violation, name)
		}
	}
	c, _ := asked(t)
	if c.Called(Line{ID: "1", Kind: task.CallEdit, Paths: []string{"src/a"}}); c.violation != nil {
		t.Errorf("violation = %v; want none for a call that a rule allows", c.violation)
	}
}

func askTooOften(c *Calls) {
	for i := range maxCalls + 1 {
		c.answered[fmt.Sprint(i)] = true
	}
	c.Ask(Line{ID: "last"})
}

func TestACallThatCannotWriteNeedsNoQuestion(t *testing.T) {
	for kind, ends := range map[task.CallKind]bool{task.CallExecute: false, task.CallEdit: true} {
		c := &Calls{}
		c.Exempt(task.CallExecute)
		c.Called(Line{ID: "1", Kind: kind, Command: "ls"})
		if (c.Violation() != nil) != ends {
			t.Errorf("a call of the kind %s without a question: %v; want the run ended: %v", kind, c.Violation(), ends)
		}
	}
}

func TestAPersonIsAskedAboutAFewCallsAtATime(t *testing.T) {
	c, _ := asked(t)
	c.job.Calls.Otherwise = task.AskPerson
	c.job.Ask = func(task.Call, bool) (task.CallDecision, error) { return task.CallDecision{}, nil }
	for i := range maxOpen + 2 {
		c.Ask(Line{ID: fmt.Sprint(i), Kind: task.CallFetch, Raw: []byte(`{"a":1,"a":2}`)})
	}
	if rejected := answersOf(t, c); len(c.open) != maxOpen || len(rejected) != 2 || !strings.Contains(rejected[0], "at most 20 calls at a time") {
		t.Errorf("%d are open, and the answers are %q; want %d, and two rejected", len(c.open), rejected, maxOpen)
	}
	if got, want := string(c.open[0].Raw), `"{\"a\":1,\"a\":2}"`; got != want {
		t.Errorf("an input with a member twice is shown as %s; want %s", got, want)
	}
}
