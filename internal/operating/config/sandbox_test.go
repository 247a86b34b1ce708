package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/operating/config"
	"mailboxd/internal/sandboxing/sandbox"
)

// sandboxDir makes a directory with a project, a mailbox, a state directory and some links,
// and the configuration in a directory of its own.
func sandboxDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"conf", "app/build", "box", "state/box", "home/.tool", "opt"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"kernel": "/sys", "app/out": "../home", "link": "app", "app/inner": "build", "home/conf": "../conf"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("AINL_AGENT_ROOT", "")
	return dir
}

func sandboxed(t *testing.T, dir, exec, section string) (config.Config, error) {
	t.Helper()
	path := filepath.Join(dir, "conf", "config.yaml")
	text := "root: DIR/box\nstate_dir: DIR/state/box\nworktrees_dir: /dev/shm/clones\nagents:\n- {id: a, exec: {command: [/bin/true]" + exec + "}, sandbox: " + section + "}\n"
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(path, "")
}

func TestASandboxThatWouldNotHoldIsRefused(t *testing.T) {
	dir := sandboxDir(t)
	for _, test := range []struct{ exec, section, want string }{
		{"", "{profile: open}", `agents[0].sandbox.profile: "open" is not one of none, read-only, workspace, offline`},
		{"", "{missing: allow}", `agents[0].sandbox.missing: "allow" is not one of`},
		{"", "{profil: offline}", `did you mean agents[].sandbox.profile?`},
		{"", "{missing: weaker, network: [example.com]}", "agents[0].sandbox.missing: the weaker sandbox has no network"},
		{"}, worker: {command: [/bin/true]", "{tasks: true}", "agents[0].sandbox.tasks: is for an exec agent"},
		{"", "{write: [/]}", "agents[0].sandbox.write[0]: /: is the whole file system"},
		{"", "{read: [/]}", "agents[0].sandbox.read[0]: /: is the whole file system"},
		{"", "{write: [DIR/box/tasks]}", "is in or around the mailbox"},
		{"", "{read: [DIR/box]}", "is in or around the mailbox"},
		{"", "{read: [DIR/state]}", "is in or around the state directory"},
		{"", "{write: [DIR/app, DIR/app/out]}", "agents[0].sandbox.write[1]: " + dir + "/app/out: "},
		{", cwd: DIR/app", "{write: [DIR/app/out/.tool]}", "a symbolic link leads out of " + dir + "/app, to " + dir + "/home/.tool"},
		{"", "{write: [DIR/link]}", "is a symbolic link to " + dir + "/app; name that directly"},
		{"", "{write: [DIR/home]}", "shows the whole home directory"},
		{"", "{write: [DIR/conf]}", "has the configuration file"},
		{"", "{write: [DIR/conf/config.yaml]}", "has the configuration file"},
		{"", "{write: [/etc]}", "agents[0].sandbox.write[0]: /etc: is in /etc"},
		{"", "{write: [DIR/app, /etc/cron.d]}", "agents[0].sandbox.write[1]: /etc/cron.d: is in /etc"},
		{"", "{write: [/proc/sys]}", "agents[0].sandbox.write[0]: /proc/sys: is in /proc"},
		{"", "{write: [/proc]}", "agents[0].sandbox.write[0]: /proc: is in /proc"},
		{"", "{write: [/sys/fs]}", "agents[0].sandbox.write[0]: /sys/fs: is in /sys"},
		{"", "{write: [/dev/shm]}", "agents[0].sandbox.write[0]: /dev/shm: is in /dev"},
		{"", "{read: [~/x]}", "write the home directory out"},
		{"", "{home: [/etc]}", "agents[0].sandbox.home[0]"},
		{"", "{profile: read-only, home: [conf]}", "agents[0].sandbox.home[0]: " + dir + "/home/conf: has the configuration file"},
		{"", "{memory: 4GB}", `agents[0].sandbox.memory: "4GB" is no size: write one such as 4GiB or 512MiB`},
		{"", "{memory: 1MiB}", "agents[0].sandbox.memory: 1MiB is too little to start a program; write at least 32MiB"},
		{"", "{pids: 3}", "agents[0].sandbox.pids: 3 is too little to start a program; write at least 32"},
		{"", "{pids: -1}", "agents[0].sandbox.pids: -1 is too little"},
		{"", "{profile: none, pids: 100}", "agents[0].sandbox.profile: memory and pids are limits of a sandbox"},
		{"", "{home: [../x]}", "agents[0].sandbox.home[0]"},
		{", cwd: DIR/box/refs", "{}", "agents[0].exec.cwd: " + dir + "/box/refs: is in or around the mailbox"},
		{", cwd: DIR/state", "{}", "agents[0].exec.cwd: " + dir + "/state: is in or around the state directory"},
		{", cwd: DIR", "{}", "agents[0].exec.cwd: " + dir + ": shows the whole home directory"},
		{", cwd: DIR/conf", "{}", "agents[0].exec.cwd: " + dir + "/conf: has the configuration file"},
		{", cwd: /etc/cron.d", "{}", "agents[0].exec.cwd: /etc/cron.d: is in /etc"},
		{", cwd: /proc/self/root/opt", "{}", "agents[0].exec.cwd: /proc/self/root/opt: is in /proc"},
		{", cwd: DIR/kernel", "{}", "agents[0].exec.cwd: " + dir + "/kernel: is in /sys"},
		{", cwd: /sys/fs", "{profile: read-only}", "agents[0].exec.cwd: /sys/fs: is in /sys"},
		{", cwd: /dev", "{profile: offline}", "agents[0].exec.cwd: /dev: is in /dev"},
		{"}, worker: {command: [/bin/true], cwd: /etc", "{}", "agents[0].worker.cwd: /etc: is in /etc"},
		{", workdirs: [DIR/app, /etc]", "{}", "agents[0].exec.workdirs[1]: /etc: is in /etc"},
		{", worktree: true, cwd: DIR/app", "{}", "worktrees_dir: /dev/shm/clones: is in /dev"},
	} {
		test.section = strings.ReplaceAll(test.section, "DIR", dir)
		_, err := sandboxed(t, dir, test.exec, test.section)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("sandbox: %s with %q = %v; want %q", test.section, test.exec, err, test.want)
		}
	}
}

func TestASandboxHasThePathsOfItsConfiguration(t *testing.T) {
	dir := sandboxDir(t)
	c, err := sandboxed(t, dir, ", cwd: DIR/link", "{home: [.tool/login.json], read: [../opt, DIR/conf], write: [DIR/opt], memory: 2GiB, pids: 100}")
	if err != nil {
		t.Fatal(err)
	}
	got := config.Bindings(c.ReadAgents())[0].Sandbox
	want := sandbox.Path{Name: dir + "/link", Real: dir + "/app"}
	if got.Profile != sandbox.Workspace || got.Missing != sandbox.Refuse || got.Cwd != want {
		t.Errorf("the sandbox is %+v; want the defaults and the cwd %+v", got, want)
	}
	if home := (sandbox.Path{Name: dir + "/home/.tool/login.json", Real: dir + "/home/.tool/login.json"}); !slices.Equal(got.Home, []sandbox.Path{home}) {
		t.Errorf("home is %v; want %v", got.Home, home)
	}
	if got.Memory != 2<<30 || got.Processes != 100 {
		t.Errorf("the limits are %d and %d; want 2 GiB and 100", got.Memory, got.Processes)
	}
	if len(got.Read) != 2 || got.Read[0].Real != dir+"/opt" || len(got.Write) != 1 {
		t.Errorf("read is %v and write %v", got.Read, got.Write)
	}
}

func TestASandboxHasTheLoginAndTheHostsOfAProfile(t *testing.T) {
	dir := sandboxDir(t)
	for _, test := range []struct {
		section string
		hosts   int
	}{{"{}", 3}, {"{network: []}", 0}, {"{network: [example.com]}", 1}, {"{profile: offline}", 0}} {
		path := filepath.Join(dir, "conf", "config.yaml")
		text := "root: " + dir + "/box\nstate_dir: " + dir + "/state/box\nagents: [{id: a, profile: claude, exec: {command: [/bin/true]}, sandbox: " + test.section + "}]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(path, "")
		if err != nil {
			t.Fatal(err)
		}
		got := config.Bindings(c.ReadAgents())[0].Sandbox
		if len(got.Network) != test.hosts {
			t.Errorf("sandbox: %s has the hosts %v; want %d", test.section, got.Network, test.hosts)
		}
		login := dir + "/home/.claude/.credentials.json"
		if len(got.Home) != 1 || got.Home[0].Real != login || len(got.Read) == 0 || got.Read[0].Real != dir+"/home/.claude/settings.json" {
			t.Errorf("sandbox: %s writes %v and reads %v; want the login and the settings", test.section, got.Home, got.Read)
		}
	}
}

func TestAWritableDirectoryWithTheFileThatTheConfigurationLinksToIsRefused(t *testing.T) {
	dir := sandboxDir(t)
	kept := filepath.Join(dir, "app", "kept.yaml")
	text := "root: " + dir + "/box\nstate_dir: " + dir + "/state/box\nagents: [{id: a, exec: {command: [/bin/true]}, sandbox: {write: [" + dir + "/app]}}]\n"
	if err := os.WriteFile(kept, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "conf", "config.yaml")
	if err := os.Symlink(kept, path); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(path, ""); err == nil || !strings.Contains(err.Error(), "has the configuration file") {
		t.Errorf("Load = %v; want that the agent could change the configuration", err)
	}
}

func TestAReadableDirectoryOfTheControlSocketIsAWarning(t *testing.T) {
	dir := sandboxDir(t)
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "runtime"))
	for section, want := range map[string]bool{
		"{read: [DIR/runtime]}": true, "{read: [DIR/opt, DIR/runtime/mailboxd]}": true, "{write: [DIR/runtime]}": true,
		"{read: [DIR/runtime/other]}": false, "{read: [DIR/opt]}": false, "{profile: none, read: [DIR/runtime]}": false,
	} {
		if _, err := sandboxed(t, dir, "", strings.ReplaceAll(section, "DIR", dir)); err != nil {
			t.Errorf("sandbox: %s = %v; want it accepted", section, err)
		}
		found, err := config.Examine(filepath.Join(dir, "conf", "config.yaml"), "")
		if err != nil {
			t.Fatal(err)
		}
		warns := slices.ContainsFunc(found.Mistakes, func(m config.Mistake) bool {
			return m.Effect == config.Warns && m.Line == 5 && strings.Contains(m.Message, "has the directory of the control socket")
		})
		if warns != want {
			t.Errorf("sandbox: %s has the mistakes %v; want a warning %t", section, found.Mistakes, want)
		}
	}
}

func TestNoSandboxIsTheDefault(t *testing.T) {
	dir := sandboxDir(t)
	for _, section := range []string{"null", "{profile: none, write: [/]}"} {
		c, err := sandboxed(t, dir, "", section)
		if err != nil {
			t.Fatal(err)
		}
		if got := config.Bindings(c.ReadAgents())[0].Sandbox; got.Active() {
			t.Errorf("sandbox: %s is %+v; want none", section, got)
		}
	}
}
