package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"mailboxd/internal/strict"
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

// holdInboxes holds every line of every inbox of a script's mailbox to its
// dialect, when the script is over: all that its daemons said to anybody.
func holdInboxes(env *testscript.Env) {
	inboxes, _ := filepath.Glob(filepath.Join(env.WorkDir, "box", "agents", "*", "inbox.jsonl"))
	for _, path := range inboxes {
		text, err := os.ReadFile(path)
		if err == nil {
			err = strictly(string(text))
		}
		if err != nil {
			env.T().Fatal(fmt.Sprintf("%s has %v", path, err))
		}
	}
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
