package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var (
	scriptsDaemon = flag.String("scripts.daemon", "", "the mailboxd that the scripts run; empty: this test binary")
	scriptsRecord = flag.String("scripts.record", "", "a directory for what each script leaves behind; empty: nothing is recorded")
)

// recording has the scripts run another build, and keeps what they leave behind, so that
// internal/testtools/differential can compare two builds.
type recording struct{ daemon, into string }

// newRecording puts the build of the flag first in PATH.
func newRecording(t *testing.T) recording {
	t.Helper()
	if *scriptsDaemon != "" {
		bin := t.TempDir()
		if err := os.Symlink(*scriptsDaemon, filepath.Join(bin, "mailboxd")); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	return recording{daemon: "mailboxd", into: *scriptsRecord}
}

// keep copies what other programs see of the mailboxes of a script, and the events of
// each, as the build under test prints them.
func (r recording) keep(env *testscript.Env) {
	if r.into == "" {
		return
	}
	dir := filepath.Join(r.into, strings.TrimPrefix(filepath.Base(env.WorkDir), "script-"))
	err := filepath.WalkDir(env.WorkDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // a script made it unreadable
		}
		name, _ := filepath.Rel(env.WorkDir, path)
		switch {
		case entry.Name() == "root" && entry.Type().IsRegular():
			return r.write(dir, name+".events", r.events(path))
		case entry.Type().IsRegular() && kept(name):
			text, _ := os.ReadFile(path) // one that cannot be read is kept as empty
			return r.write(dir, name, text)
		}
		return nil
	})
	if err == nil {
		err = r.write(dir, "WORK", []byte(env.WorkDir))
	}
	if err != nil {
		env.T().Fatal(fmt.Sprintf("record the script: %v", err))
	}
}

// kept tells whether a file is one that the daemon writes for others.
func kept(name string) bool {
	dir := "/" + filepath.ToSlash(filepath.Dir(name)) + "/"
	for _, part := range []string{"/results/", "/rejected/", "/queues/", "/history/"} {
		if strings.Contains(dir, part) {
			return true
		}
	}
	return filepath.Base(name) == "inbox.jsonl"
}

// events are those of a state directory, which has a file with the name of its mailbox.
func (r recording) events(path string) []byte {
	root, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	cmd := exec.Command(r.daemon, "events", "--json")
	cmd.Env = append(os.Environ(), "AINL_AGENT_ROOT="+strings.TrimSpace(string(root)), "MAILBOXD_STATE_DIR="+filepath.Dir(path),
		"XDG_CONFIG_HOME="+filepath.Dir(path), "XDG_RUNTIME_DIR="+filepath.Dir(path))
	out, err := cmd.Output()
	if err != nil {
		return fmt.Appendf(out, "%v\n", err)
	}
	return out
}

func (r recording) write(dir, name string, text []byte) error {
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
