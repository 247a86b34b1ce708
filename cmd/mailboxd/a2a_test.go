package main

import (
	"github.com/rogpeppe/go-internal/testscript"

	"mailboxd/internal/testtools/a2acli"
)

// findA2A sets the variable A2A to the path of the command line program of A2A's Go SDK: a2aprogram. The condition
// [a2a] says whether it can be built.
func findA2A(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: a2aprogram")
	}
	path, err := a2acli.Build()
	ts.Check(err)
	ts.Setenv("A2A", path)
}
