package differential_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// A change is one that somebody could make by mistake: a text of a file of the base, and
// another one in its place.
type change struct{ name, file, from, to string }

var changes = []change{
	{"the data of an event", "dispatch/retry.go", `"of_revision", last.Revision`, `"of_revision", last.Revision+1`},
	{"an error text", "dispatch/control.go", "it is %s already (%s)", "it is already %s (%s)"},
	{"words to a requester", "internal/talk/news.go", `note = "waits for "`, `note = "is waiting for "`},
	{"a duplicate is an event no more", "dispatch/hearrequest.go", `	return tx.Log(event(last, "task.duplicate", map[string]any{"file": c.line.File, "offset": c.line.Offset}))`, "	return nil"},
	{"who has submitted is not said", "dispatch/submit.go", `data := with(conclusion(o), "by", by.Who)`, `data := with(conclusion(o), "by", "")`},
	{"a pause ends with its daemon", "dispatch/pause.go", "range agents {", "range agents[:0] {"},
}

// TestAChangeIsFound builds the base with one change after another. The harness has to find
// each within a hundred scenarios.
func TestAChangeIsFound(t *testing.T) {
	if !*changed {
		t.Skip("it builds several daemons; -changed runs it")
	}
	base, _ := builds(t)
	for n, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			daemon, err := c.build(n)
			if err != nil {
				t.Fatal(err)
			}
			compare := comparison{base: base, current: daemon}
			dir := shortDir(t) // TempDir has the name of the test in it
			for tried := range uint64(100) {
				found, err := compare.one(t.Context(), newScenario(*seed+tried), filepath.Join(dir, "m"))
				if err != nil {
					t.Fatal(err)
				}
				if found != "" {
					t.Logf("found by scenario %d:\n%s", tried+1, found)
					return
				}
			}
			t.Error("a hundred scenarios did not find it")
		})
	}
}

// build builds the base with the change.
func (c change) build(n int) (string, error) {
	source, err := filepath.Abs(filepath.Join(work, "base-source"))
	if err != nil {
		return "", err
	}
	path := filepath.Join(source, c.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if strings.Count(string(text), c.from) != 1 {
		return "", fmt.Errorf("%s has %q %d times; want it once", c.file, c.from, strings.Count(string(text), c.from))
	}
	changed, overlay := filepath.Join(work, fmt.Sprintf("changed-%d.go", n)), filepath.Join(work, fmt.Sprintf("overlay-%d.json", n))
	if err := os.WriteFile(changed, []byte(strings.Replace(string(text), c.from, c.to, 1)), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return "", err
	}
	return build(source, fmt.Sprintf("changed-%d", n), "-overlay", overlay)
}
