package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/strict"
)

// holdToDialects holds every line of some files to its dialect: strict FILE...
func holdToDialects(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: strict file...")
	}
	for _, name := range args {
		if err := strictly(ts.ReadFile(name)); err != nil {
			ts.Fatalf("%s has %v", name, err)
		}
	}
}

// holdInboxes checks every inbox of a script when the script is over: each line
// against its dialect, and all of them in their order against what its owner sent.
func holdInboxes(env *testscript.Env) {
	inboxes, sent := correspondence(env.WorkDir)
	for _, path := range inboxes {
		text, err := os.ReadFile(path)
		if err == nil {
			err = strictly(string(text))
		}
		if err == nil {
			err = strict.Sequence(filepath.Base(filepath.Dir(path)), sent, bytes.Split(bytes.TrimSpace(text), []byte("\n")))
		}
		if err != nil {
			env.T().Fatal(fmt.Sprintf("%s has %v", path, err))
		}
	}
}

// correspondence returns the inboxes of a script, and what anybody sent in it: the
// lines of its files, wherever it has moved them, and what agents said in their runs.
func correspondence(dir string) (inboxes []string, sent [][]byte) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || !entry.Type().IsRegular():
		case entry.Name() == "inbox.jsonl":
			inboxes = append(inboxes, path)
		case entry.Name() == "ledger.db":
			sent = append(sent, saidByRuns(path)...)
		case strings.Contains(entry.Name(), ".jsonl"):
			text, _ := os.ReadFile(path)
			sent = append(sent, bytes.Split(text, []byte("\n"))...)
		}
		return nil
	})
	return inboxes, sent
}

// saidByRuns returns what agents said in their runs. It returns nothing of a ledger
// that a script has broken.
func saidByRuns(path string) (said [][]byte) {
	reader, err := ledger.OpenReader(path)
	if err != nil {
		return nil
	}
	defer reader.Close()
	tasks, _ := reader.Tasks(context.Background(), ledger.Filter{All: true})
	for _, row := range tasks {
		conversation, _, _ := reader.Conversation(context.Background(), row.Seq)
		about, _ := reader.About(context.Background(), row.Seq)
		thread, _ := reader.LinkedMessages(context.Background(), conversation.Thread, "")
		if raw, _ := reader.Raw(context.Background(), row.Seq); row.Dialect == envelope.Clutch && row.File == "" {
			said = append(said, raw) // its message may be recorded in the dialect of its recipient
		}
		for _, m := range append(about, thread...) {
			if m.Via == task.ByRun {
				said = append(said, m.Body)
			}
		}
	}
	return said
}

// strictly says which line is not as its dialect is written down.
func strictly(text string) error {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if err := strict.Line([]byte(line)); err != nil {
			return fmt.Errorf("the line %s: %w", line, err)
		}
	}
	return nil
}
