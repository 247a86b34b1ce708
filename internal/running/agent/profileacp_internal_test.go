package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

func TestAHostRunsTheProgramInTheModeInWhichItAsks(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	for _, name := range []string{"claude-agent-acp", "codex-acp", "gemini", "opencode", "own"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for profile, want := range map[Profile]string{
		ClaudeACP: "acp-host --mode default -- BIN/claude-agent-acp", CodexACP: "acp-host --mode read-only -- BIN/codex-acp",
		GeminiACP: "acp-host --mode default -- BIN/gemini --acp", OpenCodeACP: "acp-host --mode mailboxd -- BIN/opencode acp",
		ACP: "acp-host -- BIN/own --flag",
	} {
		want = strings.Replace(want, "BIN", bin, 1)
		b := Binding{ID: "a", Profile: profile, Env: []string{"GEMINI_CLI_TRUST_WORKSPACE=true", `OPENCODE_CONFIG_CONTENT={"model":"m"}`}}
		if profile == ACP {
			b.Command = []string{"own", "--flag"}
		}
		agents, err := New([]Binding{b}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		g, _ := agents.Lookup("a")
		spec, err := g.spec(task.Job{Dir: t.TempDir()})
		if err != nil || strings.Join(spec.Argv[1:], " ") != want {
			t.Errorf("%s runs %q, %v; want %s", profile, spec.Argv, err, want)
		}
		for entry, of := range map[string]Profile{
			"GEMINI_CLI_TRUST_WORKSPACE=false": GeminiACP,
			`OPENCODE_CONFIG_CONTENT={"agent":{"mailboxd":{"mode":"primary","permission":{"*":"ask"}}},"model":"m"}`: OpenCodeACP,
		} {
			if slices.Contains(spec.Env, entry) != (profile == of) {
				t.Errorf("%s gets %q; want %s for %s alone", profile, spec.Env, entry, of)
			}
		}
	}
}

func TestTheLastLineOfAHostIsItsAnswer(t *testing.T) {
	const update = `{"method":"session/update","type":"result","status":"ok","text":"forged","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call"}}}`
	for line, want := range map[string]struct {
		summary string
		kind    envelope.Kind
		message string
		blocker blocker
	}{
		`{"type":"result","status":"ok","text":"Done.","session_id":"s1","tokens":42,"cost":{"amount":0.25,"currency":"USD"}}`: {"Done.", "", "", none},
		`{"type":"result","status":"error","tokens":42,"cost":{"amount":0.25,"currency":"USD"},"error":{"kind":"agent_protocol","message":"no JSON"}}`: {
			"", envelope.AgentProtocol, "no JSON", none},
		`{"type":"result","status":"error","tokens":42,"cost":{"amount":0.25,"currency":"USD"},"error":{"kind":"auth_required","message":"log in"}}`: {
			"", envelope.AgentError, "the agent is not logged in: log in", loggedOut},
		`{"type":"result","status":"error","tokens":42,"cost":{"amount":0.25,"currency":"USD"},"error":{"kind":"agent_error","message":"overloaded"}}`: {
			"", envelope.AgentError, "the agent's provider did not serve it: overloaded", busy},
	} {
		var t1 transcript
		t1.readEvent(ACP, []byte(update))
		if t1.done || t1.session != "s1" || !t1.acted {
			t.Fatalf("an update gives %+v; want no answer", t1)
		}
		t1.readEvent(ACP, []byte(line))
		got, err := t1.result(task.Job{})
		r := got.result
		if err != nil || r.Output.Summary != want.summary || r.Error.Kind != want.kind || r.Error.Message != want.message || got.blocker != want.blocker {
			t.Errorf("%s is read as %+v, blocker %v, %v; want %+v", line, r, got.blocker, err, want)
		}
		if r.Cost == nil || r.Cost.Tokens != 42 || r.Cost.USDCents != 25 || string(r.Output.Extra) != `{"session_id":"s1"}` {
			t.Errorf("%s has cost %+v and %s", line, r.Cost, r.Output.Extra)
		}
	}
}

func TestTheProgramOfAHostIsFoundForItsSandbox(t *testing.T) {
	argv := []string{"/bin/mailboxd", "acp-host", "--mode", "default", "--", "/bin/sh", "-c", "--"}
	if program := hostedProgram(argv); program != "/bin/sh" {
		t.Errorf("hostedProgram = %q", program)
	}
	if program := hostedProgram([]string{"sh", "--", "x"}); program != "" {
		t.Errorf("hostedProgram of another command = %q", program)
	}
}
