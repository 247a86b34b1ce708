package agent_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/sandboxing/sandbox"
)

func TestAPermissionBecomesFlagsOfTheProgram(t *testing.T) {
	held := sandbox.Settings{Profile: sandbox.Workspace}
	for _, c := range []struct {
		profile    agent.Profile
		permission agent.Permission
		sandbox    sandbox.Settings
		own        []string // tools of the entry
		flags      string   // of every run
	}{
		{agent.Claude, agent.ReadOnly, sandbox.Settings{}, nil, "--permission-mode dontAsk --strict-mcp-config"},
		{agent.Claude, agent.Edit, held, nil, "--permission-mode acceptEdits --strict-mcp-config"},
		{agent.Gemini, agent.ReadOnly, sandbox.Settings{}, nil, "--skip-trust"},
		{agent.Gemini, agent.Edit, sandbox.Settings{}, nil, "--skip-trust --approval-mode auto_edit"},
		{agent.Gemini, agent.Edit, held, nil, "--skip-trust --approval-mode yolo"},
		{agent.Gemini, agent.Edit, sandbox.Settings{Profile: sandbox.Workspace, Missing: sandbox.Open}, nil, "--skip-trust --approval-mode auto_edit"},
		{agent.Gemini, agent.Edit, sandbox.Settings{}, []string{"read", "command"}, "--skip-trust --approval-mode yolo"},
	} {
		b := agent.Binding{ID: "a", Profile: c.profile, Permission: c.permission, Sandbox: c.sandbox, Tools: c.own}.Filled()
		if got := strings.Join(b.Command, " "); !strings.HasSuffix(got, c.flags) {
			t.Errorf("%s may %s: command %q; want it to end with %q", c.profile, c.permission, got, c.flags)
		}
	}
}

func TestAPermissionHoldsInEachRunAndNarrowsTheToolsOfTheTask(t *testing.T) {
	for _, c := range []struct {
		profile    agent.Profile
		permission agent.Permission
		tools      []string // of the task
		flags      string   // of the run
		rules      []string // parts of the file or the variable with the rules
	}{
		{agent.Claude, agent.ReadOnly, nil, "--tools Read,Grep,Glob --allowedTools Read,Grep,Glob", nil},
		{agent.Claude, agent.ReadOnly, []string{"Read", "Write", "Bash", "Task"}, "--tools Read --allowedTools Read", nil},
		{agent.Claude, agent.Edit, nil, "", nil},
		{agent.Claude, agent.Edit, []string{"read", "edit", "command"}, "--tools Read,Grep,Glob,Edit,Write,NotebookEdit --allowedTools Read,Grep,Glob,Edit,Write,NotebookEdit", nil},
		{agent.Codex, agent.ReadOnly, nil, "--sandbox read-only -c web_search=disabled -", nil},
		{agent.Codex, agent.Edit, nil, "--sandbox workspace-write -", nil},
		{agent.Gemini, agent.ReadOnly, nil, "--admin-policy DIR/gemini-policy.toml", []string{"toolName = \"*\"\ndecision = \"deny\"", "toolName = \"read_file\"\ndecision = \"allow\""}},
		{agent.OpenCode, agent.ReadOnly, []string{"edit"}, "--agent mailboxd", []string{`"*":"deny"`, `"edit":"deny"`, `"bash":"deny"`, `"read":"deny"`}},
		{agent.OpenCode, agent.ReadOnly, nil, "--agent mailboxd", []string{`"*":"deny"`, `"edit":"deny"`, `"bash":"deny"`, `"grep":"allow"`, `"*.env":"deny"`}},
		{agent.OpenCode, agent.Edit, nil, "--agent mailboxd", []string{`"bash":"deny"`, `"edit":"allow"`, `"task":"deny"`}},
	} {
		b := standIn(t, c.profile)
		b.Permission = c.permission
		g, j := bound(t, b), jobFor(t, request(""))
		j.Tools = c.tools
		got := g.Run(t.Context(), j, nil)
		program := tell(t, got)
		flags := strings.ReplaceAll(strings.Join(program.Argv[len(g.Binding().Command)-1:], " "), j.Dir, "DIR")
		if flags != c.flags {
			t.Errorf("%s may %s, with the tools %q: flags %q; want %q", c.profile, c.permission, c.tools, flags, c.flags)
		}
		if level := got.Result.Output.Enforcement[envelope.ControlTools]; level != envelope.LevelAgentFlag {
			t.Errorf("%s may %s, with the tools %q: tools were held %q; want %q", c.profile, c.permission, c.tools, level, envelope.LevelAgentFlag)
		}
		rules, _ := os.ReadFile(filepath.Join(j.Dir, "gemini-policy.toml"))
		at := slices.IndexFunc(program.Environ, func(entry string) bool { return strings.HasPrefix(entry, "OPENCODE_CONFIG_CONTENT=") })
		if at >= 0 {
			rules = []byte(program.Environ[at])
		}
		for _, part := range c.rules {
			if !strings.Contains(string(rules), part) {
				t.Errorf("%s may %s, with the tools %q: rules\n%s\nwant them to have\n%s", c.profile, c.permission, c.tools, rules, part)
			}
		}
	}
}

func TestARunWithOtherRulesThanTheCurrentOnesWasNotHeldByThem(t *testing.T) {
	b := standIn(t, agent.OpenCode)
	b.Permission = agent.ReadOnly
	j := jobFor(t, request(""))
	bound(t, b).Run(t.Context(), j, nil)
	level := func() envelope.Level {
		return bound(t, b).Recover(t.Context(), j).Result.Output.Enforcement[envelope.ControlTools]
	}
	if got := level(); got != envelope.LevelAgentFlag {
		t.Errorf("tools were held %q; want %q", got, envelope.LevelAgentFlag)
	}
	if b.Permission = agent.Edit; level() != envelope.LevelAdvisory {
		t.Errorf("under another permission, tools were held %q; want %q", level(), envelope.LevelAdvisory)
	}
}

func TestAPermissionThatCannotBeHeldIsRefused(t *testing.T) {
	for want, b := range map[string]agent.Binding{
		`permission: "write" is not one of read_only, edit`:                         {Profile: agent.Claude, Permission: "write"},
		"permission: only the profiles claude, codex, gemini, opencode have one":    {Profile: agent.Cursor, Permission: agent.Edit},
		"permission: only the command of a profile has flags for it; name them in ": {Profile: agent.Claude, Command: []string{"claude", "-p"}, Permission: agent.Edit},
	} {
		b.ID = "tester"
		if _, err := agent.New([]agent.Binding{b}, agent.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v; want %q", b, err, want)
		}
	}
}

func TestAResultSaysWhichToolsTheProgramDoesNotHave(t *testing.T) {
	j := jobFor(t, request(""))
	j.Tools = []string{"read", "Foo"}
	r := bound(t, standIn(t, agent.Gemini)).Run(t.Context(), j, nil).Result
	want := `Gemini CLI has no tool "Foo", so the name allows nothing; the names for every program are read, edit, command, web`
	if r.Review.Required || r.Review.Reason != want {
		t.Errorf("review = %+v; want the note %q", r.Review, want)
	}
}

func TestUnknownNamesOfToolsAreFound(t *testing.T) {
	names := []string{"read", "Read", "Bash(git *)", "mcp__x__y", "read_file", "bash", "Foo"}
	for profile, want := range map[agent.Profile]string{
		agent.Claude: "read_file bash Foo", agent.Gemini: "Read Bash(git *) bash Foo", agent.OpenCode: "Read Bash(git *) read_file Foo", agent.Cursor: "", agent.Shell: "",
	} {
		if got := strings.Join(profile.UnknownTools(names), " "); got != want {
			t.Errorf("%s does not know %q; want %q", profile, got, want)
		}
	}
}
