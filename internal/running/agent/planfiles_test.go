package agent_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
)

// put writes a file below a directory, and returns its path.
func put(t *testing.T, dir, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// planOf is the plan of a task without anything special.
func planOf(p *agent.Planner, b agent.Binding, rule agent.ProgramRule) client.Plan {
	return p.PlanOf(envelope.Task{Hash: "h"}, b.Filled(), task.Terms{}, rule)
}

func TestAPlanCoversTheProgramAndTheScriptsThatItsCommandNames(t *testing.T) {
	dir := t.TempDir()
	tool := put(t, dir, "tool", "\x7fELF", 0o755)
	plain := put(t, dir, "plain", "print(1)", 0o644)
	second := put(t, dir, "second", "data", 0o644)
	named := put(t, dir, "named.py", "print(2)", 0o644)
	shebang := put(t, dir, "shebang", "#!/bin/sh\n", 0o644)
	python := put(t, dir, "bin/python3.12", "\x7fELF", 0o755)
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	env, err := exec.LookPath("env")
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := filepath.EvalSymlinks(env)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		command []string
		want    []string // without the program
	}{
		{"no argument", []string{tool}, nil},
		{"data", []string{tool, plain, second}, nil},
		{"a script by its name", []string{tool, "-v", named}, []string{named}},
		{"a script by its first line", []string{tool, shebang}, []string{shebang}},
		{"a program", []string{tool, python}, []string{python}},
		{"a relative script", []string{tool, "named.py"}, []string{named}},
		{"the value of an option", []string{tool, "--require=" + named}, []string{named}},
		{"the first file of an interpreter", []string{python, "-u", plain, second}, []string{plain}},
		{"an interpreter that another program starts", []string{env, "A=1", "python3.12", "plain", "second"}, []string{python, plain}},
		{"what the task chooses", []string{python, "{{.TaskFile}}", "{{.RunDir}}/named.py"}, nil},
		{"a directory", []string{tool, dir}, nil},
		{"nothing that is there", []string{tool, "/nonexistent.py"}, nil},
	} {
		plan := planOf(new(agent.Planner), agent.Binding{Command: test.command, Cwd: dir}, "")
		want := append(slices.Clone(test.want), test.command[0])
		if test.command[0] == env {
			want[len(want)-1] = resolved
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(plan.Files)); !slices.Equal(got, want) {
			t.Errorf("a command with %s: the plan covers %q; want %q", test.name, got, want)
		}
	}
}

func TestARelativeScriptIsThatOfTheDirectoryOfTheRun(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "job.py", "1", 0o644)
	t.Chdir(dir)
	command := []string{"sh", "job.py"}
	if plan := planOf(new(agent.Planner), agent.Binding{Command: command}, ""); len(plan.Files) != 1 {
		t.Errorf("in a new run directory, the plan covers %v; want the program alone", plan.Files)
	}
	worker := agent.Binding{Worker: &agent.Worker{Command: []string{"sh", "job.py"}}, Cwd: dir}
	if plan := planOf(new(agent.Planner), worker, ""); plan.Files[filepath.Join(dir, "job.py")] == "" {
		t.Errorf("for a worker, the plan covers %v; want its script too", plan.Files)
	}
}

func TestAChangedFileMakesAnotherPlan(t *testing.T) {
	dir := t.TempDir()
	const large = 2 << 20 // its hash is remembered
	for _, size := range []int{10, large} {
		tool := put(t, dir, "tool", strings.Repeat("a", size), 0o755)
		var p agent.Planner
		binding := agent.Binding{Command: []string{tool}}
		digests := []string{planOf(&p, binding, "").Digest()}
		for _, content := range []string{"b", "c", "d"} { // of the same size, in the same moment
			put(t, dir, "tool", strings.Repeat(content, size), 0o755)
			digest := planOf(&p, binding, "").Digest()
			if slices.Contains(digests, digest) {
				t.Fatalf("another content of %d bytes makes no other plan", size)
			}
			digests = append(digests, digest)
		}
		put(t, dir, "tool", strings.Repeat("a", size), 0o755)
		if planOf(&p, binding, "").Digest() != digests[0] {
			t.Errorf("the first content of %d bytes makes another plan than before", size)
		}
	}
}

// timeOf is the time of the last change of a file.
func timeOf(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

func TestAFileThatCannotBeReadIsCoveredByItsIdentity(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads every file")
	}
	dir := t.TempDir()
	tool := put(t, dir, "tool", "one", 0o755)
	digest := func() string {
		if err := os.Chmod(tool, 0o111); err != nil {
			t.Fatal(err)
		}
		plan := planOf(new(agent.Planner), agent.Binding{Command: []string{tool}}, "")
		if !strings.HasPrefix(plan.Files[tool], "not read: ") {
			t.Fatalf("the plan covers %q; want the identity of the file", plan.Files)
		}
		return plan.Files[tool][strings.Index(plan.Files[tool], "changed"):]
	}
	before := digest()
	if err := os.Chmod(tool, 0o700); err != nil {
		t.Fatal(err)
	}
	for changed := timeOf(t, tool); timeOf(t, tool) == changed; { // the clock of files has steps
		put(t, dir, "tool", "two", 0o755)
	}
	if digest() == before {
		t.Error("another content of a file that can't be read makes no other plan")
	}
}

func TestProgramsOfProfilesCountByTheirPath(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "versions/2.1.45", "one", 0o755)
	put(t, dir, "versions/2.2.0", "two", 0o755)
	link := filepath.Join(dir, "claude")
	update := func(version string) {
		_ = os.Remove(link)
		if err := os.Symlink(filepath.Join("versions", version), link); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name    string
		binding agent.Binding
		rule    agent.ProgramRule
		same    bool // after an update
	}{
		{"the program of a profile", agent.Binding{Profile: agent.Claude, Command: []string{link}}, "", true},
		{"the same with arguments of its own", agent.Binding{Profile: agent.Claude, Command: []string{link, "-p"}}, "", true},
		{"the same by its content", agent.Binding{Profile: agent.Claude, Command: []string{link}}, agent.ByContent, false},
		{"a command without a profile", agent.Binding{Command: []string{link}}, "", false},
		{"a command without a profile by its path", agent.Binding{Command: []string{link}}, agent.ByPath, true},
		{"a profile without a program", agent.Binding{Profile: agent.Shell, Command: []string{link}}, "", false},
		{"another program for a profile", agent.Binding{Profile: agent.Codex, Command: []string{link}}, "", false},
		{"a worker", agent.Binding{Worker: &agent.Worker{Command: []string{link}}}, "", false},
	} {
		update("2.1.45")
		var p agent.Planner
		before := planOf(&p, test.binding, test.rule)
		update("2.2.0")
		after := planOf(&p, test.binding, test.rule)
		if got := before.Digest() == after.Digest(); got != test.same {
			t.Errorf("%s: an update leaves the plan as it is: %t; want %t", test.name, got, test.same)
		}
		b := test.binding.Filled()
		if p.AddVersions(&after, b); test.same && after.Versions[link] != "2.2.0" || !test.same && after.Versions != nil {
			t.Errorf("%s: the versions are %v", test.name, after.Versions)
		}
		if test.same && before.Digest() != after.Digest() {
			t.Errorf("%s: the digest covers the version", test.name)
		}
	}
}

func TestTheVersionOfAProgramIsFoundWithoutRunningIt(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "lib/node_modules/@openai/codex/package.json", `{"name":"@openai/codex","version":"0.46.0"}`, 0o644)
	for name, want := range map[string]string{
		"lib/node_modules/@openai/codex/bin/codex.js": "@openai/codex 0.46.0",
		"versions/2025.09.18-7ae6800/cursor-agent":    "2025.09.18-7ae6800",
		"store/abc-codex-0.46.0/bin/codex":            "0.46.0",
		"bin/python3.12":                              "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", // SHA-256 of x
	} {
		path := put(t, dir, name, "x", 0o755)
		plan := planOf(new(agent.Planner), agent.Binding{Command: []string{path}}, agent.ByPath)
		if new(agent.Planner).AddVersions(&plan, agent.Binding{}); plan.Versions[path] != want {
			t.Errorf("the version of %s is %q; want %q", name, plan.Versions[path], want)
		}
	}
}

func TestAPlanCoversTheValuesOfVariablesByAKey(t *testing.T) {
	t.Setenv("PASSED", "secret")
	with := func(key string, env ...string) client.Plan {
		p := agent.Planner{Key: func() []byte { return []byte(key) }}
		return planOf(&p, agent.Binding{Command: []string{"/bin/true"}, Env: env}, "")
	}
	first := with("k", "PASSED", "SET=secret", "ABSENT")
	if text := string(first.Encode()); strings.Contains(text, "secret") {
		t.Errorf("the plan has a value: %s", text)
	}
	if first.Env["PASSED"] == first.Env["SET"] || len(first.Env["SET"]) != 64 || first.Env["ABSENT"] != "" || len(first.Env) != 3 {
		t.Errorf("the variables of the plan are %v; want three, with different digests for the same value", first.Env)
	}
	if again := with("k", "ABSENT", "SET=secret", "PASSED"); again.Digest() != first.Digest() {
		t.Error("the order of variables makes another plan")
	}
	for _, other := range []client.Plan{
		with("k", "PASSED", "SET=other", "ABSENT"), with("k", "PASSED", "SET=secret"), with("k2", "PASSED", "SET=secret", "ABSENT"),
		with("k", "PASSED", "SET=secret", "ABSENT", "HOME"), with("k", "PASSED", "SET=secret", "ABSENT", "PASSED=other"),
	} {
		if other.Digest() == first.Digest() {
			t.Errorf("the plan with the variables %v is the same as with %v", other.Env, first.Env)
		}
	}
}

func TestAPlanCoversTheManifest(t *testing.T) {
	of := func(description string) string {
		manifest, _ := envelope.DecodeManifest([]byte(`{"schema_version":"1.0","agent_id":"a","role_types":["executor"],"description":"` + description + `"}`))
		return planOf(new(agent.Planner), agent.Binding{Command: []string{"/bin/true"}, Manifest: &manifest}, "").Digest()
	}
	first, again, other := of("one"), of("one"), of("two")
	if first != again || first == other {
		t.Errorf("the plans are %s, %s, and with another manifest %s; want the same twice, and another one", first, again, other)
	}
}

func TestAPlanCoversTheSetupOfAWorktree(t *testing.T) {
	dir := t.TempDir()
	claude := put(t, dir, "claude", "one", 0o755)
	prepare := put(t, dir, "prepare.sh", "one", 0o755)
	b := agent.Binding{Profile: agent.Claude, Command: []string{claude}, Cwd: dir, Worktree: true, Setup: []string{prepare, "all"}}
	for rule, covered := range map[agent.ProgramRule]bool{"": true, agent.ByContent: true, agent.ByPath: false} {
		put(t, dir, "prepare.sh", "one", 0o755)
		first := planOf(new(agent.Planner), b, rule)
		if _, ok := first.Files[prepare]; !ok || !slices.Equal(first.Setup, b.Setup) {
			t.Errorf("%q: the plan covers %v and the setup %q", rule, first.Files, first.Setup)
		}
		put(t, dir, "prepare.sh", "two", 0o755)
		if got := planOf(new(agent.Planner), b, rule).Digest() != first.Digest(); got != covered {
			t.Errorf("%q: another script makes another plan: %t; want %t", rule, got, covered)
		}
		new(agent.Planner).AddVersions(&first, b)
		if _, shown := first.Versions[claude]; shown == (rule == agent.ByContent) {
			t.Errorf("%q: the versions are %v", rule, first.Versions)
		}
		other := b
		other.Setup = []string{prepare}
		if planOf(new(agent.Planner), other, rule).Digest() == first.Digest() {
			t.Errorf("%q: another setup makes no other plan", rule)
		}
		other.Setup, other.Sandbox.SetupNetwork = b.Setup, []string{"example.com"}
		if planOf(new(agent.Planner), other, rule).Digest() == first.Digest() {
			t.Errorf("%q: other hosts of the setup make no other plan", rule)
		}
	}
	b.Worktree = false
	if plan := planOf(new(agent.Planner), b, ""); plan.Setup != nil || plan.Files != nil {
		t.Errorf("without a worktree, the plan has the setup %q with %v", plan.Setup, plan.Files)
	}
}

func TestAScriptOfAWorktreeIsTheCommittedOne(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=u", "-c", "user.email=u@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	put(t, dir, "sub/job", "one", 0o644)
	put(t, dir, "beside.py", "one", 0o644)
	git("init", "-q")
	git("add", "-A")
	git("commit", "-q", "-m", "one")
	binding := agent.Binding{Command: []string{"sh", "job", "../beside.py"}, Cwd: filepath.Join(dir, "sub"), Worktree: true}
	plan := func() client.Plan { return planOf(new(agent.Planner), binding, "") }
	first := plan()
	if content := first.Files["HEAD:sub/job"]; !strings.HasPrefix(content, "git:") || first.Files["HEAD:beside.py"] == "" || len(first.Files) != 3 {
		t.Fatalf("the plan covers %v; want the committed scripts", first.Files)
	}
	put(t, dir, "sub/job", "two", 0o644) // the clone won't have it
	put(t, dir, "other", "two", 0o644)
	git("add", "other")
	git("commit", "-q", "-m", "another file")
	if plan().Digest() != first.Digest() {
		t.Error("a change that isn't committed, or isn't of the script, makes another plan")
	}
	git("commit", "-q", "-a", "-m", "two")
	if plan().Digest() == first.Digest() {
		t.Error("another committed script makes no other plan")
	}
}
