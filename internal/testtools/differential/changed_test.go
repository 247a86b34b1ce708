package differential_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// A change is one that somebody could make by mistake: a text of a file, and
// another one in its place.
type change struct{ name, file, from, to string }

var changes = []change{
	{"the data of an event", "internal/decisions/core/control.go", `"of_revision", last.Revision`, `"of_revision", last.Revision+1`},
	{"an error text", "internal/decisions/core/errors.go", "it is %s already (%s)", "it is already %s (%s)"},
	{"words to a requester", "internal/decisions/conversation/notification.go", `note = "waits for "`, `note = "is waiting for "`},
	{"a duplicate is an event no more", "dispatch/exchange/acceptor.go", `	return tx.Log(store.Event(last, task.KindTaskDuplicate, map[string]any{"file": c.Line.File, "offset": c.Line.Offset}))
}`, "	return nil\n}"},
	{"who has submitted is not said", "dispatch/lease.go", `data := store.WithField(o.EndData(), "by", by.Who)`, `data := store.WithField(o.EndData(), "by", "")`},
	{"a pause ends with its daemon", "dispatch/store/pauses.go", "range agents {", "range agents[:0] {"},
}

// A change whose text is gone plants nothing.
func TestEachChangeHasItsTextOnce(t *testing.T) {
	for _, c := range changes {
		if _, err := c.text(); err != nil {
			t.Error(err)
		}
	}
}

// TestAChangeIsFound builds the working tree with one change after another. The harness has to find
// each within a hundred scenarios.
func TestAChangeIsFound(t *testing.T) {
	if !*changed {
		t.Skip("it builds several daemons; -changed runs it")
	}
	current, err := buildCurrent()
	if err != nil {
		t.Fatal(err)
	}
	for n, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			daemon, err := c.build(n)
			if err != nil {
				t.Fatal(err)
			}
			compare := comparison{base: current, current: daemon}
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

// text returns the file of the change with the change.
func (c change) text() (string, error) {
	text, err := os.ReadFile(filepath.Join(root, c.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), c.from); n != 1 {
		return "", fmt.Errorf("%s has %q %d times; want it once", c.file, c.from, n)
	}
	return strings.Replace(string(text), c.from, c.to, 1), nil
}

// build builds the working tree with the change.
func (c change) build(n int) (string, error) {
	path, err := filepath.Abs(filepath.Join(root, c.file))
	if err != nil {
		return "", err
	}
	text, err := c.text()
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(work, fmt.Sprintf("changed-%d.go", n)), filepath.Join(work, fmt.Sprintf("overlay-%d.json", n))
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return "", err
	}
	return build(root, fmt.Sprintf("changed-%d", n), "-overlay", overlay)
}
