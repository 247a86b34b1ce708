package runnerdaemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReportsStartNoProgramAndAnnounceAnEditedOne(t *testing.T) {
	o := newOwner(t)
	dir := t.TempDir()
	program, calls := filepath.Join(dir, "program"), filepath.Join(dir, "calls")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "git"), "#!/bin/sh\necho called >>"+calls+"\n")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	write(program, "#!/bin/sh\necho one\n")
	r := newRunner(t, o, "\nagents:\n  - id: edited\n    exec: {command: ["+program+"], output: text}\n")
	if err := os.MkdirAll(r.state("repositories", "project.git"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.start()
	for range 3 {
		o.outcome(o.give("edited", nil))
	}
	if text, _ := os.ReadFile(calls); strings.Count(string(text), "called") != 1 {
		t.Errorf("git was called %q; want one call at the start, for the commits that the runner has", text)
	}
	o.mu.Lock()
	first := o.digest("edited")
	o.mu.Unlock()
	write(program, "#!/bin/sh\necho two\n")
	o.awaitVoid(o.give("edited", nil))
	o.await("another digest", func() bool { return o.digest("edited") != first })
	if said, _ := o.outcome(o.give("edited", nil)); said.Result.Output.Summary != "two" {
		t.Errorf("the edited program answered %+v", said.Result)
	}
}
