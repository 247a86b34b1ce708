package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"mailboxd/internal/access/api"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/strict"
)

// holdReplays replays every run of the ledgers of a script: each line is strict Clutch, and what
// the lines say is what the ledger has (CLUTCH-30, CLUTCH-72). A script that breaks its ledger
// has a file replay-differs.
func holdReplays(env *testscript.Env) {
	if _, err := os.Stat(filepath.Join(env.WorkDir, "replay-differs")); err == nil {
		return
	}
	_ = filepath.WalkDir(env.WorkDir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && entry.Name() == "ledger.db" {
			if err := replayAll(path); err != nil {
				env.T().Fatal(fmt.Sprintf("%s: %v", path, err))
			}
		}
		return nil
	})
}

// replayAll replays the runs of a ledger. It replays none of a ledger that a script has broken.
func replayAll(path string) error {
	reader, err := ledger.OpenReader(path)
	if err != nil {
		return nil
	}
	defer reader.Close()
	ctx, records := context.Background(), &api.Records{Ledger: reader}
	rows, err := reader.Tasks(ctx, ledger.Filter{})
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	for _, row := range rows {
		run, err := reader.RunOf(ctx, row)
		if err != nil {
			return err
		}
		if seen[run] {
			continue
		}
		seen[run] = true
		found, err := records.Replay(ctx, run)
		if err != nil {
			return fmt.Errorf("replay of run %s: %w", run, err)
		}
		ids := map[string]bool{}
		for _, m := range found.Messages {
			if err := strict.Clutch(m.Envelope); err != nil && !asItCame(string(m.Envelope)) {
				return fmt.Errorf("replay of run %s: %w: %s", run, err, m.Envelope)
			}
			_, id, _ := strings.Cut(string(m.Envelope), `"id":"`)
			id, _, _ = strings.Cut(id, `"`)
			if ids[id] && !asItCame(string(m.Envelope)) { // what came may reach several
				return fmt.Errorf("replay of run %s: two messages are called %s", run, id)
			}
			ids[id] = true
		}
		if len(found.Differences) > 0 {
			return fmt.Errorf("replay of run %s differs from the ledger: %s", run, strings.Join(found.Differences, "; "))
		}
	}
	return nil
}

// asItCame reports whether an envelope is one that a sender wrote, which need not be as strict
// as ours: ours name their place in the store.
func asItCame(line string) bool { return !strings.Contains(line, `"seq":`) }
