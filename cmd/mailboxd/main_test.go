package main

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mailboxd/internal/stores/ledger"
)

// The test binary is mailboxd itself, and plays the agents that need its packages, so that the
// scripts run real daemons and real processes.
func TestMain(m *testing.M) {
	testscript.Main(cleanTests{m}, map[string]func(){
		"mailboxd":   main,
		"otheragent": func() { otherAgents[os.Args[1]](); syscall.Exit(0) }, // os.Exit takes a second in a program built to find races
		"editor":     editor,
		"recorder":   recorder,
	})
}

// TestScripts is the specification of the program: one subject per file.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := goCache()
	if err != nil {
		t.Fatal(err)
	}
	seen := &coverage{occurred: map[string]bool{}}
	t.Cleanup(func() { seen.check(t) })
	recorded := newRecording(t)
	dir, files := "testdata/script", []string(nil)
	if testing.Short() {
		dir, files = "", briefScripts(t)
	}
	testscript.Run(t, testscript.Params{
		Dir:   dir,
		Files: files,
		Cmds:  vocabulary,
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", examples)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // a program built to find races takes a second to end
			env.Setenv("GOCACHE", cache)              // an example is built; its home has no cache
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			env.Setenv("XDG_RUNTIME_DIR", filepath.Join(env.WorkDir, "run")) // unset, that of the person who tests counts
			env.Setenv("AINL_AGENT_ROOT", filepath.Join(env.WorkDir, "box"))
			env.Setenv("LEDGER_SCHEMA", strconv.Itoa(ledger.SchemaVersion))
			env.Setenv("NEWER_SCHEMA", strconv.Itoa(ledger.SchemaVersion+1))
			env.Defer(func() { holdInboxes(env) })
			env.Defer(func() { holdReplays(env) })
			env.Defer(func() { seen.collect(env) })
			env.Defer(func() { recorded.keep(env) })
			return os.MkdirAll(filepath.Join(env.WorkDir, "box"), 0o700)
		},
		Condition:           condition,
		RequireExplicitExec: true,
	})
}
