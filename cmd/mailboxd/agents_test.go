package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"mailboxd/internal/testtools/toolcaller"
)

// otherAgents are the agents that need packages of mailboxd: the program otheragent. The program agent plays all others.
var otherAgents = map[string]func(){
	"call":         call,
	"extract":      extractProof,
	"replay":       replay,
	"connect":      connect,
	"birds":        countBirds,
	"delegate-mcp": delegateAsEditor,
	"toolserver":   toolServer,
	"toolcaller": func() {
		if err := toolcaller.Main(os.Args[2:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	},
}

// programsVariable has the directory of the programs of scripts, for tests that run this test binary again.
const programsVariable = "TESTS_PROGRAMS"

// addPrograms puts on PATH what scripts start often, until remove is called: the program agent, and python3 itself,
// for which PATH may have a script that looks for a version and takes ten times as long.
func addPrograms() (remove func(), err error) {
	dir, remove := os.Getenv(programsVariable), func() {}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "mailboxd-programs-"); err != nil {
			return remove, err
		}
		remove = func() { _ = os.RemoveAll(dir) }
		build := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "agent"), "../../internal/testtools/scriptagent")
		if out, err := build.CombinedOutput(); err != nil {
			return remove, fmt.Errorf("build the agents of scripts: %w\n%s", err, out)
		}
		if python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output(); err == nil {
			if err := os.Symlink(strings.TrimSpace(string(python)), filepath.Join(dir, "python3")); err != nil {
				return remove, err
			}
		}
		if err := os.Setenv(programsVariable, dir); err != nil {
			return remove, err
		}
	}
	return remove, os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}
