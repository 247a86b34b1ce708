package differential_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

var scripts = flag.String("scripts", "", "compare what these scripts of cmd/mailboxd leave behind: a regular expression for their names, . for all")

// TestEveryScriptLeavesTheSame runs the scripts of cmd/mailboxd with both builds, and
// compares the results, inboxes, dead letters, callbacks and events that they leave behind.
// A script that differs runs again with both: one that a build does not repeat is listed.
func TestEveryScriptLeavesTheSame(t *testing.T) {
	if *scripts == "" {
		t.Skip("it takes minutes; -scripts=. compares all scripts")
	}
	base, current := builds(t)
	before, after := recordScripts(t, base, *scripts), recordScripts(t, current, *scripts)
	var differing []string
	for name := range before {
		if difference(before[name], after[name]) != "" {
			differing = append(differing, name)
		}
	}
	slices.Sort(differing)
	t.Logf("%d scripts, of which %d differ at first", len(before), len(differing))
	if len(differing) == 0 {
		return
	}
	again := strings.Join(differing, "|")
	baseAgain, currentAgain := recordScripts(t, base, again), recordScripts(t, current, again)
	for _, name := range differing {
		found := difference(before[name], after[name])
		baseVaries, currentVaries := difference(before[name], baseAgain[name]), difference(after[name], currentAgain[name])
		switch {
		case difference(baseAgain[name], currentAgain[name]) == "":
			t.Logf("%s was the same when it ran again; before:\n%s", name, found)
		case baseVaries != "" || currentVaries != "":
			t.Logf("%s is not repeatable:\n%s%s", name, baseVaries, currentVaries)
		default:
			t.Errorf("%s differs; base (-) and current (+):\n%s", name, found)
		}
	}
}

// recordScripts runs scripts with a build, and returns what each left behind.
func recordScripts(t *testing.T, daemon, names string) map[string]record {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "test", "./cmd/mailboxd", "-count=1", "-timeout=30m", "-run", "TestScripts/^("+regexpOf(names)+")$",
		"-args", "-scripts.daemon="+daemon, "-scripts.record="+dir)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("some scripts fail with %s: %v\n%s", daemon, err, out)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]record{}
	for _, e := range entries {
		if all[e.Name()], err = readRecording(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func regexpOf(names string) string {
	if names == "." {
		return ".*"
	}
	return names
}

// slugs are the names that the daemon makes for mailboxes, from their paths.
var slugs = regexp.MustCompile(`state/mailboxd/[^/"]+`)

// program is how a process is told about that gave a command: the builds have paths of their own.
var program = regexp.MustCompile(`\(/[^ ]*/mailboxd `)

// readRecording reads what a script left behind, without what varies.
func readRecording(dir string) (record, error) {
	work, err := os.ReadFile(filepath.Join(dir, "WORK"))
	if err != nil {
		return record{}, err
	}
	w := newWitness(&site{dir: dir})
	var sections []section
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "WORK" {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		plain := program.ReplaceAllString(slugs.ReplaceAllString(strings.ReplaceAll(string(text), string(work), "WORK"), "state/mailboxd/SLUG"), "(mailboxd ")
		sections = append(sections, sectionsOf(slugs.ReplaceAllString(name, "state/mailboxd/SLUG"), plain)...)
		return err
	})
	w.add(filepath.Base(dir), sections)
	return w.records[0], err
}

// sectionsOf divides a file of a recording by what its lines are about.
func sectionsOf(name, text string) []section {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	switch {
	case strings.HasSuffix(name, ".events"):
		return grouped(name, lines, func(line string) (string, string) {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				return "nothing", line
			}
			return e.Task, fmt.Sprintf("r%d %s %s", e.Rev, e.Kind, derived.ReplaceAllString(string(e.Data), `"$1":"HASH"`))
		})
	case filepath.Base(name) == "inbox.jsonl":
		return grouped(name, lines, subjectOf)
	case strings.HasSuffix(name, ".json"):
		return []section{{name, members([]byte(text))}}
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(masked(a), masked(b)) })
	return []section{{name, lines}}
}

func difference(a, b record) string {
	return outcome{records: []record{a}}.against(outcome{records: []record{b}})
}
