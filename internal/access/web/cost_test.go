package web

import (
	"path/filepath"
	"testing"

	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
)

func TestTheCostOfARunThatGoesOnIsThatOfItsProgressFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "progress.jsonl"), `{"cost_used":{"tokens":900,"usd_cents":1}}
{"cost_used":{"tokens":1920,"usd_cents":3}}
{"cost_us`)
	f := client.TaskDetails{
		Task: client.Task{State: task.Running}, Runs: []client.Run{{Attempt: 1, Dir: dir}},
		Events: []client.Event{{Kind: task.KindBudgetReserved, Data: []byte(`{"reserved":{"tokens":4000}}`)}},
	}
	if got := spentOf(f); got != "1,920 tokens, $0.03 of 4,000 tokens" {
		t.Errorf("spentOf = %q; want 1,920 tokens, $0.03 of 4,000 tokens", got)
	}
}
