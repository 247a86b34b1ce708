package main

import (
	"path/filepath"
	"slices"
	"testing"
)

// briefly are the scripts that go test -short runs: one or two of each subject, without those that
// wait for a deadline, a pause or a lost process. All others run without -short.
var briefly = []string{
	"ask", "approvals", "bad_run_obstacle", "cancel_inbox", "cap_message", "change_window", "clowl_dlgt",
	"clowl_done", "clutch_messages", "clutch_tools", "config", "contract", "dialects", "events", "hostile_lines",
	"intake", "lineage", "lint", "manifests", "mcp_end", "odd_ids", "one_daemon", "overseer_rejects", "policy",
	"refs", "refused", "retry", "revisions", "routing", "runs", "sandbox_config", "send", "summary", "version",
	"workflow",
}

// briefScripts returns the files of the scripts for -short.
func briefScripts(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, name := range briefly {
		file := filepath.Join("testdata", "script", name+".txtar")
		if !slices.Contains(all, file) {
			t.Errorf("there is no script %s", file)
		}
		files = append(files, file)
	}
	return files
}
