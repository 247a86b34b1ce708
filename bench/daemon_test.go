package main

import (
	"slices"
	"strings"
	"testing"
)

// The caller may be a user of mailboxd: with AINL_AGENT_ROOT the measured daemon would serve
// the caller's mailbox, because a variable takes precedence over the configuration file.
func TestTheMeasuredDaemonDoesNotUseTheMailboxOfTheCaller(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"AINL_AGENT_ROOT", "MAILBOXD_ROOT", "MAILBOXD_LOG_LEVEL", "XDG_STATE_HOME", "HOME"} {
		t.Setenv(name, "/in/use")
	}
	h := &daemon{dir: dir, program: "mailboxd"}
	env := h.command(t.Context(), "serve").Env
	if at := slices.IndexFunc(env, func(v string) bool { return strings.Contains(v, "/in/use") }); at >= 0 {
		t.Errorf("its environment has %s", env[at])
	}
	if !slices.Contains(env, "HOME="+dir) {
		t.Errorf("its environment is %v; want a home of its own", env)
	}
}
