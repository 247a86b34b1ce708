package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/running/agent"
)

// A project is a directory with the permitted directory src, and others beside it.
type project struct {
	dir string
	g   *agent.Agent
}

func newProject(t *testing.T) project {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"src/app", "other", "box/tasks", "src/state/runs", "src/my app"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"src/out": "../other", "src/in": "app", "alias": "src"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "src/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := playing(t, "tell")
	b.Output, b.Workdirs = agent.JSON, []string{dir + "/src", dir + "/box", dir + "/later"}
	own := agent.OwnDirs{Root: dir + "/box", State: dir + "/src/state"}
	agents, err := agent.New([]agent.Binding{b}, agent.Options{Own: own})
	if err != nil {
		t.Fatal(err)
	}
	g, _ := agents.Lookup(b.ID)
	return project{dir, g}
}

func taskIn(t *testing.T, dir string) envelope.Task {
	t.Helper()
	return jobFor(t, request(fmt.Sprintf(`, "metadata": {"mbx.workdir": %q}`, dir))).Task
}

func TestATaskWorksOnlyInsideTheDirectoriesOfItsAgent(t *testing.T) {
	p := newProject(t)
	for name, want := range map[string]string{
		"src/app":           "src/app",
		"src/in":            "src/app",
		"src/../src/app/":   "src/app",
		"src/my app":        "src/my app",
		"src":               "refused: contains the state of mailboxd: choose a directory below it",
		"src/state":         "refused: is part of the state of mailboxd",
		"src/state/runs":    "refused: is part of the state of mailboxd",
		"box/tasks":         "refused: is part of the mailbox",
		"src/out":           "refused: leads out of exec.workdirs",
		"src/app/../../box": "refused: is part of the mailbox",
		"src/out/../other":  "refused: leads out of exec.workdirs",
		"other":             "refused: is not inside exec.workdirs of agent \"tester\": to allow it, add this line to exec.workdirs of the agent and reload: - " + p.dir + "/other",
		"other/new one":     `add this line to exec.workdirs of the agent: - "` + p.dir + `/other/new one"`,
		"src/../other":      "refused: is not inside exec.workdirs",
		"src2":              "refused: is not inside exec.workdirs",
		"alias/app":         "refused: is not inside exec.workdirs",
		"src/gone":          "missing: does not exist: make the directory, then send the task again",
		"later/app":         "missing: does not exist",
		"src/file":          "missing: cannot be used: it is not a directory",
		"src/file/x":        "missing: cannot be used",
	} {
		got, findings := p.g.Cwd(taskIn(t, p.dir+"/"+name))
		kind, text, _ := strings.Cut(want, ": ")
		switch {
		case kind == want:
			if got != filepath.Join(p.dir, want) || findings.Refused() {
				t.Errorf("%s: %q, %v; want %s", name, got, findings, want)
			}
		case kind == "refused" && findings.Kind() != envelope.PolicyViolation,
			kind == "missing" && findings.Kind() != envelope.ContextUnavailable,
			!strings.Contains(findings.String(), text), got != "":
			t.Errorf("%s: %q, %s %v; want %s", name, got, findings.Kind(), findings, want)
		}
	}
}

// A sender must not learn from a refusal what exists elsewhere.
func TestADirectoryOutsideIsRefusedAlikeWhetherItExistsOrNot(t *testing.T) {
	p := newProject(t)
	_, there := p.g.Cwd(taskIn(t, p.dir+"/other"))
	_, missing := p.g.Cwd(taskIn(t, p.dir+"/abcde"))
	if want := strings.ReplaceAll(there.String(), "/other", "/abcde"); missing.String() != want {
		t.Errorf("a directory that does not exist: %s; want %s", missing, want)
	}
}

func TestAPermittedDirectoryThatBecomesALinkPermitsNothingElse(t *testing.T) {
	p := newProject(t)
	if err := os.Rename(p.dir+"/src", p.dir+"/moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", p.dir+"/src"); err != nil {
		t.Fatal(err)
	}
	if got, findings := p.g.Cwd(taskIn(t, p.dir+"/src/etc")); !findings.Refused() {
		t.Errorf("Cwd = %q; want it refused", got)
	}
}

func TestARunBeginsInTheDirectoryOfItsTask(t *testing.T) {
	p := newProject(t)
	j := jobFor(t, request(fmt.Sprintf(`, "metadata": {"mbx.workdir": %q}`, p.dir+"/src/in")))
	if notified := tell(t, p.g.Run(t.Context(), j, nil)); notified.Cwd != p.dir+"/src/app" {
		t.Errorf("the run began in %s; want %s", notified.Cwd, p.dir+"/src/app")
	}
}

func TestALinkThatIsSwappedBeforeTheStartStartsNothing(t *testing.T) {
	p := newProject(t)
	line := request(fmt.Sprintf(`, "metadata": {"mbx.workdir": %q}`, p.dir+"/src/in"))
	if _, findings := p.g.Cwd(jobFor(t, line).Task); findings.Refused() {
		t.Fatal(findings)
	}
	swap := func(target string) {
		if err := os.Remove(p.dir + "/src/in"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, p.dir+"/src/in"); err != nil {
			t.Fatal(err)
		}
	}
	swap("../other")
	j := jobFor(t, line)
	got := p.g.Run(t.Context(), j, nil)
	expect(t, "after the check", got, envelope.Rejected, envelope.PolicyViolation)
	if got.Result.Error.Message != fmt.Sprintf(`metadata["mbx.workdir"]: %s/src/in leads out of exec.workdirs of agent "tester" by a symbolic link`, p.dir) {
		t.Errorf("message = %s", got.Result.Error.Message)
	}

	// Also when the last component becomes a link after the check of the start.
	j = jobFor(t, line)
	j.Cwd = p.dir + "/src/in"
	got = p.g.Run(t.Context(), j, nil)
	expect(t, "after the last check", got, envelope.Rejected, envelope.SpawnFailed)
	if !strings.Contains(got.Result.Error.Message, "became a symbolic link after the task was checked") {
		t.Errorf("message = %s", got.Result.Error.Message)
	}
}

func TestAWorkerTakesNoDirectory(t *testing.T) {
	b := agent.Binding{ID: "w", Worker: &agent.Worker{Command: []string{"/bin/cat"}}}
	agents, err := agent.New([]agent.Binding{b}, agent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, _ := agents.Lookup("w")
	_, findings := g.Cwd(taskIn(t, "/tmp"))
	if want := `metadata["mbx.workdir"]: agent "w" is a worker: its processes have one directory for all tasks`; findings.String() != want {
		t.Errorf("a directory for a worker: %s; want %s", findings, want)
	}
	b.Workdirs = []string{"/tmp"}
	if _, err := agent.New([]agent.Binding{b}, agent.Options{}); err == nil || !strings.Contains(err.Error(), "exec.workdirs: only an agent with exec.command") {
		t.Errorf("New(worker with workdirs) = %v", err)
	}
}
